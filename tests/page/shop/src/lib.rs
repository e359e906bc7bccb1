fn slugify
