"""The index in Milvus: Milvus Lite, standalone, distributed or Zilliz, by its address."""
