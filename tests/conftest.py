pytest_plugins = ["longshore.dev.fixtures"]
