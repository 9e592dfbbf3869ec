import pytest

from mechdistill.traces.served.address import is_local


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1/v1",
        "https://127.8.0.3/v1",
        "http://[::1]:8/v1",
    ],
)
def test_loopback_is_this_machine(url):
    assert is_local(url)


@pytest.mark.parametrize(
    "url",
    [
        *("http://gpu-7:8000/v1", "https://api.openai.com/v1", "http://10.0.0.3:8000/v1"),
        *(
            "http://0.0.0.0:8000/v1",
            "http://localhost.example.org/v1",
            "http://127.0.0.1.nip.io/v1",
        ),
    ],
)
def test_any_other_host_may_be_another_machine(url):
    assert not is_local(url)
