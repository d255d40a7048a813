"""Rows as a program of the first version wrote them."""

FIRST_VERSION_ROWS = """
INSERT INTO collections VALUES ('c', 'old', 'sample', 4, '1', 'english', 1714564800000000, 3);
INSERT INTO sources VALUES ('s', 'c', 'notes', '{"a": 1}');
INSERT INTO documents VALUES (1, 'd', 'c', 's', 'message', 'k', 'Title', 'hash', 'print', 5, 6, '{"x": [1]}',
  'Ada', 'user', 7, 8, 9, NULL, 'thread', 'plain', 'embedded', NULL, 2, 8, 2, 'sample/4/1', 9, 7);
INSERT INTO documents VALUES (2, 'e', 'c', 's', 'page', 'l', '', 'hash', 'print', 5, 6, '{}',
  NULL, NULL, NULL, NULL, NULL, 'd', NULL, 'plain', 'pending', NULL, 1, 4, 3, NULL,
  -9223372036854775808, -9223372036854775808);
INSERT INTO chunks VALUES (1, 1, 0, 0, 4, 1, 'h', 'one '), (2, 1, 1, 4, 8, 1, 'h', 'two '),
  (3, 2, 0, 0, 4, 1, 'h', 'last');
INSERT INTO vectors VALUES (1, 'sample/4/1', X'0000000000000000'), (2, 'sample/4/1', X'0000000000000000');
INSERT INTO changes VALUES (1, 'c', 'put', 1, 2, NULL, 1),
  (2, 'c', 'put', 3, 3, NULL, 2), (3, 'c', 'put', 1, 2, 's', 3);
UPDATE counters SET value = 3;
"""
