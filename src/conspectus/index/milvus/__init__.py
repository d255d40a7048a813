"""An index in Milvus: Milvus Lite in a file, standalone, distributed, or hosted."""
