"""Put the context of RO-Crate 1.1 where the validator looks for it, so that it needs no network.

Run by the Python of the validator's environment (`make validator`), with the name of its cache.
The context is the one that the package rocrate 0.13.0 ships, as it was published (1.1.0). A later
rocrate ships that of RO-Crate 1.3: under the URL of 1.1, invalid crates would pass with it.
"""

import hashlib
import io
import sys
from importlib.util import find_spec
from pathlib import Path

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse

URL = "https://w3id.org/ro/crate/1.1/context"
SHA256 = "bb5dd0a79ebd5a3b074e2faf96f437503234f8a4b8e84c7149de91eae0d2222a"


class FromFile(HTTPAdapter):
    """Answers with the content of a file."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def send(self, request: PreparedRequest, *_: object, **__: object) -> Response:
        answer = HTTPResponse(
            io.BytesIO(self._content),
            headers={"Content-Type": "application/ld+json"},
            status=200,
            preload_content=False,
            request_url=request.url,
        )
        return self.build_response(request, answer)


folder = Path(find_spec("rocrate").submodule_search_locations[0])
context = (folder / "data/ro-crate.jsonld").read_bytes()
if hashlib.sha256(context).hexdigest() != SHA256:
    sys.exit(f"{folder} does not hold the context of RO-Crate 1.1 that is meant")
session = CachedSession(cache_name=sys.argv[1], backend="sqlite")
session.mount(URL, FromFile(context))
session.get(URL)
