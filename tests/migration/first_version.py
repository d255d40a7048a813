"""Rows as a program of the first version wrote them."""

FIRST_VERSION_ROWS = """
INSERT INTO collections VALUES ('c', 'old', 'sample', 4, '1', 'english', 1714564800000000, 3);
INSERT INTO sources VALUES ('s', 'c', 'notes', '{"a": 1}');
INSERT INTO documents VALUES (1, 'd', 'c', 's', 'message', 'k', 'Title', 'hash', 'print', 5, 6, '{"x": [1]}',
  'Ada', 'user', 7, 8, 9, NULL, 'thread', 'plain', 'embedded', NULL, 2, 8, 2, 'sample/4/1', 9, 7);
INSERT INTO documents VALUES (2, 'e', 'c', 's', 'page', 'l', '', 'hash', 'print', 5, 6, '{}',
  NULL, NULL, NULL, NULL, NULL, 'd', NULL, 'plain', 'pending', NULL, 1, 4, 3, NULL,
  -9223372036854775808, -9223372036854775808);
INSERT INTO chunks VALUES
  (1, 1, 0, 0, 4, 1, '68b2589574c8fb725a4836aaef9461f39a10c01064aa500948939188e4cba6de', 'one '),
  (2, 1, 1, 4, 8, 1, '17454a93840569f32711142f7cfafc3d063c9a33c846852ff736f0ff9c84a420', 'two '),
  (3, 2, 0, 0, 4, 1, '3547cb112ac4489af2310c0626cdba6f3097a2ad5a3b42ddd3b59c76c7a079a3', 'last');
INSERT INTO vectors VALUES (1, 'sample/4/1', X'0000000000000000'), (2, 'sample/4/1', X'0000000000000000');
INSERT INTO changes VALUES (1, 'c', 'put', 1, 2, NULL, 1),
  (2, 'c', 'put', 3, 3, NULL, 2), (3, 'c', 'put', 1, 2, 's', 3);
UPDATE counters SET value = 3;
"""
