"""Control (X4): the losses of `mech` towards random heads instead of the pools."""

from mechdistill.distil.mechanistic import MechanisticMethod


class RandomPool(MechanisticMethod):
    """As many heads as the pools hold, none of theirs, in teacher and student."""

    name = "random_pool"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    pools = "random"
