"""Makes the folder a package, so that its files are found wherever VIMBank is installed."""
