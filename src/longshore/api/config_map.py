"""ConfigMaps: what we keep in the API server and no kind of our own is needed for."""

from longshore.api.meta import ApiObject


class ConfigMap(ApiObject):
    data: dict[str, str] = {}
