"""ConfigMaps. Longshore stores small records in them that need no kind of their own."""

from longshore.api.meta import ApiObject


class ConfigMap(ApiObject):
    data: dict[str, str] = {}
