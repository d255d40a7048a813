CREATE TABLE allowances (
	name VARCHAR NOT NULL, 
	minute INTEGER NOT NULL, 
	used INTEGER NOT NULL, 
	CONSTRAINT pk_allowances PRIMARY KEY (name)
);
CREATE TABLE chat_answers (
	stream VARCHAR NOT NULL, 
	person VARCHAR NOT NULL, 
	documents TEXT NOT NULL, 
	frames INTEGER NOT NULL, 
	finished INTEGER NOT NULL, 
	written INTEGER NOT NULL, 
	read_at INTEGER NOT NULL, 
	CONSTRAINT pk_chat_answers PRIMARY KEY (stream)
);
CREATE TABLE collections (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	model VARCHAR, 
	dimensions INTEGER, 
	version VARCHAR, 
	language VARCHAR, 
	created INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	owner VARCHAR DEFAULT 'local' NOT NULL, 
	description TEXT DEFAULT '' NOT NULL, 
	names_to INTEGER, 
	CONSTRAINT pk_collections PRIMARY KEY (id), 
	CONSTRAINT uq_collections_name UNIQUE (name)
);
CREATE TABLE counters (
	name VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	value INTEGER NOT NULL, 
	"end" INTEGER NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (name, collection)
);
CREATE TABLE embedding_requests (
	id INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	latency FLOAT NOT NULL, 
	inputs INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	created INTEGER NOT NULL, 
	error VARCHAR, 
	user_id VARCHAR, 
	CONSTRAINT pk_embedding_requests PRIMARY KEY (id)
);
CREATE INDEX ix_embedding_requests_created ON embedding_requests (created);
CREATE TABLE groups (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	created INTEGER NOT NULL, 
	CONSTRAINT pk_groups PRIMARY KEY (id), 
	CONSTRAINT uq_groups_name UNIQUE (name)
);
CREATE TABLE job_files (
	job VARCHAR NOT NULL, 
	file INTEGER NOT NULL, 
	part INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	stored INTEGER NOT NULL, 
	CONSTRAINT pk_job_files PRIMARY KEY (job, file, part)
);
CREATE TABLE job_secrets (
	job VARCHAR NOT NULL, 
	secret TEXT NOT NULL, 
	stored INTEGER NOT NULL, 
	CONSTRAINT pk_job_secrets PRIMARY KEY (job)
);
CREATE TABLE leases (
	name VARCHAR NOT NULL, 
	holder VARCHAR NOT NULL, 
	fence INTEGER NOT NULL, 
	until INTEGER NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
CREATE TABLE purges (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	CONSTRAINT pk_purges PRIMARY KEY (id)
);
CREATE TABLE replays (
	person VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	answer TEXT, 
	created INTEGER NOT NULL, 
	stored INTEGER DEFAULT '0' NOT NULL, 
	until INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_replays PRIMARY KEY (person, "key")
);
CREATE INDEX ix_replays_created ON replays (created);
CREATE TABLE users (
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	owner INTEGER NOT NULL, 
	disabled INTEGER NOT NULL, 
	created INTEGER NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
CREATE TABLE alerts (
	id VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	"query" TEXT NOT NULL, 
	streams TEXT NOT NULL, 
	filter TEXT NOT NULL, 
	min_similarity FLOAT, 
	gap_seconds FLOAT NOT NULL, 
	webhook TEXT, 
	created INTEGER NOT NULL, 
	checked INTEGER NOT NULL, 
	since INTEGER NOT NULL, 
	CONSTRAINT pk_alerts PRIMARY KEY (id), 
	CONSTRAINT uq_alerts_owner_collection_name UNIQUE (owner, collection, name), 
	CONSTRAINT fk_alerts_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_alerts_collection_checked ON alerts (collection, checked);
CREATE TABLE audit (
	id VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	viewed_as VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	"query" TEXT NOT NULL, 
	created INTEGER NOT NULL, 
	action VARCHAR DEFAULT 'explain_as' NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id), 
	CONSTRAINT fk_audit_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_audit_collection ON audit (collection);
CREATE INDEX ix_audit_created_id ON audit (created, id);
CREATE TABLE changes (
	sequence INTEGER NOT NULL, 
	collection VARCHAR NOT NULL, 
	operation VARCHAR NOT NULL, 
	first INTEGER NOT NULL, 
	last INTEGER NOT NULL, 
	space VARCHAR, 
	"transaction" INTEGER NOT NULL, 
	CONSTRAINT pk_changes PRIMARY KEY (sequence), 
	CONSTRAINT fk_changes_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_changes_collection_sequence ON changes (collection, sequence);
CREATE TABLE chat_frames (
	stream VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	frame BLOB NOT NULL, 
	CONSTRAINT pk_chat_frames PRIMARY KEY (stream, number), 
	CONSTRAINT fk_chat_frames_stream_chat_answers FOREIGN KEY(stream) REFERENCES chat_answers (stream) ON DELETE CASCADE
);
CREATE TABLE connections (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	connector VARCHAR NOT NULL, 
	options TEXT NOT NULL, 
	cursor TEXT, 
	state VARCHAR NOT NULL, 
	error TEXT, 
	last_run INTEGER, 
	CONSTRAINT pk_connections PRIMARY KEY (id), 
	CONSTRAINT uq_connections_collection_name UNIQUE (collection, name), 
	CONSTRAINT fk_connections_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE TABLE jobs (
	id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	source VARCHAR, 
	title TEXT NOT NULL, 
	created INTEGER NOT NULL, 
	arguments TEXT NOT NULL, 
	state VARCHAR NOT NULL, 
	done INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	code VARCHAR, 
	error TEXT, 
	result TEXT, 
	started INTEGER, 
	finished INTEGER, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_jobs_collection_created_id ON jobs (collection, created, id);
CREATE INDEX ix_jobs_created_id ON jobs (created, id);
CREATE INDEX ix_jobs_state ON jobs (state);
CREATE TABLE keys (
	id VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	scopes TEXT NOT NULL, 
	created INTEGER NOT NULL, 
	expires INTEGER, 
	last_used INTEGER, 
	revoked INTEGER, 
	origin VARCHAR, 
	CONSTRAINT pk_keys PRIMARY KEY (id), 
	CONSTRAINT fk_keys_user_users FOREIGN KEY(user) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_keys_user ON keys (user);
CREATE TABLE members (
	"group" VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY ("group", user), 
	CONSTRAINT fk_members_group_groups FOREIGN KEY("group") REFERENCES groups (id) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user_users FOREIGN KEY(user) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_members_user ON members (user);
CREATE TABLE retentions (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	begins VARCHAR NOT NULL, 
	days FLOAT, 
	max_count INTEGER, 
	owner VARCHAR NOT NULL, 
	ran INTEGER, 
	CONSTRAINT pk_retentions PRIMARY KEY (id), 
	CONSTRAINT fk_retentions_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_retentions_collection_begins ON retentions (collection, begins);
CREATE TABLE sources (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	metadata TEXT NOT NULL, 
	kind VARCHAR DEFAULT 'manual' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT uq_sources_collection_name UNIQUE (collection, name), 
	CONSTRAINT fk_sources_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE TABLE deleted_memories (
	document VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	recorded INTEGER NOT NULL, 
	deleted INTEGER NOT NULL, 
	CONSTRAINT pk_deleted_memories PRIMARY KEY (document), 
	CONSTRAINT fk_deleted_memories_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_deleted_memories_source_deleted ON deleted_memories (source, deleted);
CREATE TABLE documents (
	number INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	title TEXT NOT NULL, 
	content_hash VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	recorded INTEGER NOT NULL, 
	updated INTEGER NOT NULL, 
	metadata TEXT NOT NULL, 
	author VARCHAR, 
	role VARCHAR, 
	occurred_start INTEGER, 
	occurred_end INTEGER, 
	sequence INTEGER, 
	parent VARCHAR, 
	thread VARCHAR, 
	syntax VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	error TEXT, 
	chunks INTEGER NOT NULL, 
	characters INTEGER NOT NULL, 
	origin VARCHAR DEFAULT 'user' NOT NULL, 
	trust VARCHAR DEFAULT 'trusted' NOT NULL, 
	last_chunk INTEGER, 
	embedded_in VARCHAR, 
	order_sequence INTEGER NOT NULL, 
	order_start INTEGER NOT NULL, 
	CONSTRAINT pk_documents PRIMARY KEY (number), 
	CONSTRAINT uq_documents_id UNIQUE (id), 
	CONSTRAINT uq_documents_source_key UNIQUE (source, "key"), 
	CONSTRAINT fk_documents_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_documents_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_documents_parent_documents FOREIGN KEY(parent) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_documents_collection_last_chunk_embedded_in ON documents (collection, last_chunk, embedded_in);
CREATE INDEX ix_documents_collection_recorded_id ON documents (collection, recorded, id);
CREATE INDEX ix_documents_latest ON documents (source, order_start, number) WHERE occurred_start IS NOT NULL AND chunks > 0;
CREATE INDEX ix_documents_longest ON documents (source, occurred_end - occurred_start) WHERE kind IN ('caption', 'event');
CREATE INDEX ix_documents_notes ON documents (source, number) WHERE kind = 'memory' AND thread IS NULL AND parent IS NULL;
CREATE INDEX ix_documents_parent ON documents (parent, collection, recorded, id) WHERE parent IS NOT NULL;
CREATE INDEX ix_documents_pending ON documents (collection, status, last_chunk) WHERE status = 'pending';
CREATE INDEX ix_documents_quarantined ON documents (collection, recorded, id) WHERE kind = 'quarantined';
CREATE INDEX ix_documents_remembered ON documents (source, order_start, number) WHERE kind = 'memory';
CREATE INDEX ix_documents_thread ON documents (source, thread, order_sequence, order_start, number) WHERE thread IS NOT NULL AND chunks > 0;
CREATE INDEX ix_documents_timeline ON documents (source, occurred_start, occurred_end, order_sequence, "key", kind) WHERE kind IN ('caption', 'event');
CREATE INDEX ix_documents_turns ON documents (source, number) WHERE kind = 'memory' AND thread IS NOT NULL;
CREATE INDEX ix_documents_versions ON documents (collection, source) WHERE kind = 'version';
CREATE TABLE grants (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	source VARCHAR, 
	user VARCHAR, 
	"group" VARCHAR, 
	role VARCHAR NOT NULL, 
	created INTEGER NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (id), 
	CONSTRAINT fk_grants_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_user_users FOREIGN KEY(user) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_group_groups FOREIGN KEY("group") REFERENCES groups (id) ON DELETE CASCADE
);
CREATE INDEX ix_grants_collection ON grants (collection);
CREATE INDEX ix_grants_group ON grants ("group");
CREATE INDEX ix_grants_source ON grants (source);
CREATE INDEX ix_grants_user ON grants (user);
CREATE TABLE graph_events (
	number INTEGER NOT NULL, 
	graph VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	at INTEGER NOT NULL, 
	"by" VARCHAR NOT NULL, 
	"before" TEXT NOT NULL, 
	"after" TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	undone INTEGER NOT NULL, 
	CONSTRAINT pk_graph_events PRIMARY KEY (number), 
	CONSTRAINT fk_graph_events_graph_sources FOREIGN KEY(graph) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_events_graph_number ON graph_events (graph, number);
CREATE TABLE graph_nodes (
	number INTEGER NOT NULL, 
	graph VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	aside INTEGER DEFAULT '0' NOT NULL, 
	type VARCHAR NOT NULL, 
	name TEXT NOT NULL, 
	aliases TEXT NOT NULL, 
	merged TEXT DEFAULT '[]' NOT NULL, 
	properties TEXT NOT NULL, 
	recorded INTEGER NOT NULL, 
	updated INTEGER NOT NULL, 
	valid_from INTEGER, 
	valid_until INTEGER, 
	passing INTEGER NOT NULL, 
	CONSTRAINT pk_graph_nodes PRIMARY KEY (number), 
	CONSTRAINT uq_graph_nodes_graph_id_aside UNIQUE (graph, id, aside), 
	CONSTRAINT fk_graph_nodes_graph_sources FOREIGN KEY(graph) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_nodes_graph_aside_type_id ON graph_nodes (graph, aside, type, id);
CREATE INDEX ix_graph_nodes_id_graph ON graph_nodes (id, graph);
CREATE TABLE standing_summaries (
	source VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	request TEXT NOT NULL, 
	since INTEGER NOT NULL, 
	CONSTRAINT pk_standing_summaries PRIMARY KEY (source), 
	CONSTRAINT fk_standing_summaries_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE summaries (
	id VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	recipe VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_summaries PRIMARY KEY (id), 
	CONSTRAINT fk_summaries_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_summaries_source_recipe ON summaries (source, recipe);
CREATE TABLE summary_borders (
	source VARCHAR NOT NULL, 
	recipe VARCHAR NOT NULL, 
	first FLOAT NOT NULL, 
	first_id VARCHAR NOT NULL, 
	last FLOAT NOT NULL, 
	last_id VARCHAR NOT NULL, 
	"full" INTEGER NOT NULL, 
	CONSTRAINT pk_summary_borders PRIMARY KEY (source, recipe, first, first_id), 
	CONSTRAINT fk_summary_borders_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE alert_events (
	number INTEGER NOT NULL, 
	alert VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	occurred_start INTEGER, 
	occurred_end INTEGER, 
	reason TEXT NOT NULL, 
	created INTEGER NOT NULL, 
	delivery VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	error TEXT, 
	due INTEGER, 
	CONSTRAINT pk_alert_events PRIMARY KEY (number), 
	CONSTRAINT fk_alert_events_alert_alerts FOREIGN KEY(alert) REFERENCES alerts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_alert_events_document_documents FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_alert_events_alert_source_occurred_end ON alert_events (alert, source, occurred_end);
CREATE INDEX ix_alert_events_document ON alert_events (document);
CREATE INDEX ix_alert_events_pending ON alert_events (alert, due) WHERE delivery = 'pending';
CREATE TABLE chunks (
	id INTEGER NOT NULL, 
	document INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	start INTEGER NOT NULL, 
	"end" INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	content_hash VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	page INTEGER, 
	heading TEXT, 
	CONSTRAINT pk_chunks PRIMARY KEY (id), 
	CONSTRAINT uq_chunks_document_position UNIQUE (document, position), 
	CONSTRAINT fk_chunks_document_documents FOREIGN KEY(document) REFERENCES documents (number) ON DELETE CASCADE
);
CREATE TABLE graph_edges (
	number INTEGER NOT NULL, 
	graph VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	aside INTEGER DEFAULT '0' NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	source_id VARCHAR NOT NULL, 
	target_id VARCHAR NOT NULL, 
	type VARCHAR NOT NULL, 
	weight FLOAT NOT NULL, 
	properties TEXT NOT NULL, 
	recorded INTEGER NOT NULL, 
	updated INTEGER NOT NULL, 
	valid_from INTEGER, 
	valid_until INTEGER, 
	began INTEGER NOT NULL, 
	single INTEGER NOT NULL, 
	stands INTEGER NOT NULL, 
	closed_by INTEGER, 
	CONSTRAINT pk_graph_edges PRIMARY KEY (number), 
	CONSTRAINT uq_graph_edges_id_aside UNIQUE (id, aside), 
	CONSTRAINT fk_graph_edges_graph_sources FOREIGN KEY(graph) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_edges_source_graph_nodes FOREIGN KEY(source) REFERENCES graph_nodes (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_edges_target_graph_nodes FOREIGN KEY(target) REFERENCES graph_nodes (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_edges_closed_by_graph_edges FOREIGN KEY(closed_by) REFERENCES graph_edges (number) ON DELETE SET NULL
);
CREATE INDEX ix_graph_edges_closed_by ON graph_edges (closed_by) WHERE closed_by IS NOT NULL;
CREATE INDEX ix_graph_edges_graph_aside ON graph_edges (graph, aside);
CREATE INDEX ix_graph_edges_in ON graph_edges (target, aside, weight DESC, source_id, type, valid_from, valid_until, source);
CREATE INDEX ix_graph_edges_out ON graph_edges (source, aside, weight DESC, target_id, type, valid_from, valid_until, target);
CREATE INDEX ix_graph_edges_source_aside_type ON graph_edges (source, aside, type);
CREATE TABLE graph_names (
	graph VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	node INTEGER NOT NULL, 
	merge INTEGER NOT NULL, 
	CONSTRAINT pk_graph_names PRIMARY KEY (graph, "key", node), 
	CONSTRAINT fk_graph_names_node_graph_nodes FOREIGN KEY(node) REFERENCES graph_nodes (number) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX ix_graph_names_key_graph ON graph_names ("key", graph);
CREATE INDEX ix_graph_names_node ON graph_names (node);
CREATE TABLE graph_terms (
	graph VARCHAR NOT NULL, 
	term VARCHAR NOT NULL, 
	node INTEGER NOT NULL, 
	merge INTEGER NOT NULL, 
	CONSTRAINT pk_graph_terms PRIMARY KEY (graph, term, node), 
	CONSTRAINT fk_graph_terms_node_graph_nodes FOREIGN KEY(node) REFERENCES graph_nodes (number) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX ix_graph_terms_node ON graph_terms (node);
CREATE TABLE summary_captions (
	summary VARCHAR NOT NULL, 
	document INTEGER NOT NULL, 
	CONSTRAINT pk_summary_captions PRIMARY KEY (summary, document), 
	CONSTRAINT fk_summary_captions_summary_summaries FOREIGN KEY(summary) REFERENCES summaries (id) ON DELETE CASCADE, 
	CONSTRAINT fk_summary_captions_document_documents FOREIGN KEY(document) REFERENCES documents (number) ON DELETE CASCADE
);
CREATE INDEX ix_summary_captions_document ON summary_captions (document);
CREATE TABLE summary_parts (
	summary VARCHAR NOT NULL, 
	part VARCHAR NOT NULL, 
	CONSTRAINT pk_summary_parts PRIMARY KEY (summary, part), 
	CONSTRAINT fk_summary_parts_summary_summaries FOREIGN KEY(summary) REFERENCES summaries (id) ON DELETE CASCADE, 
	CONSTRAINT fk_summary_parts_part_summaries FOREIGN KEY(part) REFERENCES summaries (id) ON DELETE CASCADE
);
CREATE INDEX ix_summary_parts_part ON summary_parts (part);
CREATE TABLE feedback (
	id VARCHAR NOT NULL, 
	collection VARCHAR NOT NULL, 
	chunk INTEGER NOT NULL, 
	user VARCHAR NOT NULL, 
	"query" TEXT NOT NULL, 
	used INTEGER NOT NULL, 
	space VARCHAR, 
	vector BLOB, 
	created INTEGER NOT NULL, 
	CONSTRAINT pk_feedback PRIMARY KEY (id), 
	CONSTRAINT fk_feedback_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_feedback_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
);
CREATE INDEX ix_feedback_chunk ON feedback (chunk);
CREATE INDEX ix_feedback_collection_created_id ON feedback (collection, created, id);
CREATE INDEX ix_feedback_user ON feedback (user);
CREATE TABLE graph_evidence (
	number INTEGER NOT NULL, 
	edge INTEGER NOT NULL, 
	document VARCHAR NOT NULL, 
	merge INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_graph_evidence PRIMARY KEY (number), 
	CONSTRAINT uq_graph_evidence_edge_document UNIQUE (edge, document), 
	CONSTRAINT fk_graph_evidence_edge_graph_edges FOREIGN KEY(edge) REFERENCES graph_edges (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_evidence_document_documents FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_evidence_document ON graph_evidence (document);
CREATE TABLE graph_moves (
	event INTEGER NOT NULL, 
	edge INTEGER NOT NULL, 
	source INTEGER NOT NULL, 
	target INTEGER NOT NULL, 
	CONSTRAINT pk_graph_moves PRIMARY KEY (event, edge), 
	CONSTRAINT fk_graph_moves_event_graph_events FOREIGN KEY(event) REFERENCES graph_events (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_moves_edge_graph_edges FOREIGN KEY(edge) REFERENCES graph_edges (number) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX ix_graph_moves_edge ON graph_moves (edge);
CREATE TABLE mentions (
	chunk INTEGER NOT NULL, 
	"key" VARCHAR NOT NULL, 
	surface TEXT NOT NULL, 
	type VARCHAR NOT NULL, 
	start INTEGER NOT NULL, 
	"end" INTEGER NOT NULL, 
	collection VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	CONSTRAINT pk_mentions PRIMARY KEY (chunk, "key"), 
	CONSTRAINT fk_mentions_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX ix_mentions_about ON mentions (collection, "key", source, chunk) WHERE type = 'subject';
CREATE INDEX ix_mentions_collection_key_source_chunk_type ON mentions (collection, "key", source, chunk, type);
CREATE TABLE vectors (
	chunk INTEGER NOT NULL, 
	space VARCHAR NOT NULL, 
	vector BLOB NOT NULL, 
	CONSTRAINT pk_vectors PRIMARY KEY (chunk, space), 
	CONSTRAINT fk_vectors_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
INSERT INTO counters (name, "collection", "value", "end") VALUES ('change', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('chunk', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('document', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('alert_event', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_node', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_edge', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_event', '', 0, 9223372036854775807);
