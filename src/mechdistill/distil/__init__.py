"""Chain-of-thought distillation: losses, cached teacher targets, trainer, methods.

Importing this package costs nothing: it imports none of its modules, so that the workflow can
read the methods' declarations without loading torch.
"""
