"""What every store must do. A backend's test module defines the fixture `make_store` and imports all of this."""

from tests.store.suite.appending import *  # noqa: F403
from tests.store.suite.concurrency import *  # noqa: F403
from tests.store.suite.contents import *  # noqa: F403
from tests.store.suite.histories import *  # noqa: F403
from tests.store.suite.reading import *  # noqa: F403
from tests.store.suite.refusing import *  # noqa: F403
from tests.store.suite.sealed import *  # noqa: F403
from tests.store.suite.side_tables import *  # noqa: F403
