"""One file a page. Found by webui.page; a name with a leading underscore is a helper of several pages."""
