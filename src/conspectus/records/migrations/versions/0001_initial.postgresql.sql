CREATE TABLE allowances (
	name VARCHAR COLLATE "C" NOT NULL, 
	minute BIGINT NOT NULL, 
	used BIGINT NOT NULL, 
	CONSTRAINT pk_allowances PRIMARY KEY (name)
);
CREATE TABLE chat_answers (
	stream VARCHAR COLLATE "C" NOT NULL, 
	person VARCHAR COLLATE "C" NOT NULL, 
	documents TEXT COLLATE "C" NOT NULL, 
	frames BIGINT NOT NULL, 
	finished INTEGER NOT NULL, 
	written BIGINT NOT NULL, 
	read_at BIGINT NOT NULL, 
	CONSTRAINT pk_chat_answers PRIMARY KEY (stream)
);
CREATE TABLE collections (
	id VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	model VARCHAR COLLATE "C", 
	dimensions INTEGER, 
	version VARCHAR COLLATE "C", 
	language VARCHAR COLLATE "C", 
	created BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	owner VARCHAR COLLATE "C" DEFAULT 'local' NOT NULL, 
	description TEXT COLLATE "C" DEFAULT '' NOT NULL, 
	names_to BIGINT, 
	CONSTRAINT pk_collections PRIMARY KEY (id), 
	CONSTRAINT uq_collections_name UNIQUE (name)
);
CREATE TABLE counters (
	name VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	value BIGINT NOT NULL, 
	"end" BIGINT NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (name, collection)
);
CREATE TABLE embedding_requests (
	id BIGINT NOT NULL, 
	kind VARCHAR COLLATE "C" NOT NULL, 
	status VARCHAR COLLATE "C" NOT NULL, 
	model VARCHAR COLLATE "C" NOT NULL, 
	latency FLOAT NOT NULL, 
	inputs INTEGER NOT NULL, 
	tokens BIGINT NOT NULL, 
	created BIGINT NOT NULL, 
	error VARCHAR COLLATE "C", 
	user_id VARCHAR COLLATE "C", 
	CONSTRAINT pk_embedding_requests PRIMARY KEY (id)
);
CREATE INDEX ix_embedding_requests_created ON embedding_requests (created);
CREATE TABLE groups (
	id VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	CONSTRAINT pk_groups PRIMARY KEY (id), 
	CONSTRAINT uq_groups_name UNIQUE (name)
);
CREATE TABLE job_files (
	job VARCHAR COLLATE "C" NOT NULL, 
	file INTEGER NOT NULL, 
	part INTEGER NOT NULL, 
	data BYTEA NOT NULL, 
	stored BIGINT NOT NULL, 
	CONSTRAINT pk_job_files PRIMARY KEY (job, file, part)
);
CREATE TABLE job_secrets (
	job VARCHAR COLLATE "C" NOT NULL, 
	secret TEXT COLLATE "C" NOT NULL, 
	stored BIGINT NOT NULL, 
	CONSTRAINT pk_job_secrets PRIMARY KEY (job)
);
CREATE TABLE leases (
	name VARCHAR COLLATE "C" NOT NULL, 
	holder VARCHAR COLLATE "C" NOT NULL, 
	fence BIGINT NOT NULL, 
	until BIGINT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
CREATE TABLE purges (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	CONSTRAINT pk_purges PRIMARY KEY (id)
);
CREATE TABLE replays (
	person VARCHAR COLLATE "C" NOT NULL, 
	key VARCHAR COLLATE "C" NOT NULL, 
	fingerprint VARCHAR COLLATE "C" NOT NULL, 
	answer TEXT COLLATE "C", 
	created BIGINT NOT NULL, 
	stored INTEGER DEFAULT '0' NOT NULL, 
	until BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_replays PRIMARY KEY (person, key)
);
CREATE INDEX ix_replays_created ON replays (created);
CREATE TABLE users (
	id VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	owner BIGINT NOT NULL, 
	disabled BIGINT NOT NULL, 
	created BIGINT NOT NULL, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
CREATE TABLE alerts (
	id VARCHAR COLLATE "C" NOT NULL, 
	owner VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	query TEXT COLLATE "C" NOT NULL, 
	streams TEXT COLLATE "C" NOT NULL, 
	filter TEXT COLLATE "C" NOT NULL, 
	min_similarity FLOAT, 
	gap_seconds FLOAT NOT NULL, 
	webhook TEXT COLLATE "C", 
	created BIGINT NOT NULL, 
	checked BIGINT NOT NULL, 
	since BIGINT NOT NULL, 
	CONSTRAINT pk_alerts PRIMARY KEY (id), 
	CONSTRAINT uq_alerts_owner_collection_name UNIQUE (owner, collection, name), 
	CONSTRAINT fk_alerts_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_alerts_collection_checked ON alerts (collection, checked);
CREATE TABLE audit (
	id VARCHAR COLLATE "C" NOT NULL, 
	actor VARCHAR COLLATE "C" NOT NULL, 
	viewed_as VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	query TEXT COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	action VARCHAR COLLATE "C" DEFAULT 'explain_as' NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id), 
	CONSTRAINT fk_audit_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_audit_collection ON audit (collection);
CREATE INDEX ix_audit_created_id ON audit (created, id);
CREATE TABLE changes (
	sequence BIGINT NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	operation VARCHAR COLLATE "C" NOT NULL, 
	first BIGINT NOT NULL, 
	last BIGINT NOT NULL, 
	space VARCHAR COLLATE "C", 
	transaction BIGINT NOT NULL, 
	CONSTRAINT pk_changes PRIMARY KEY (sequence), 
	CONSTRAINT fk_changes_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_changes_collection_sequence ON changes (collection, sequence);
CREATE TABLE chat_frames (
	stream VARCHAR COLLATE "C" NOT NULL, 
	number BIGINT NOT NULL, 
	frame BYTEA NOT NULL, 
	CONSTRAINT pk_chat_frames PRIMARY KEY (stream, number), 
	CONSTRAINT fk_chat_frames_stream_chat_answers FOREIGN KEY(stream) REFERENCES chat_answers (stream) ON DELETE CASCADE
);
CREATE TABLE connections (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	owner VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	connector VARCHAR COLLATE "C" NOT NULL, 
	options TEXT COLLATE "C" NOT NULL, 
	cursor TEXT COLLATE "C", 
	state VARCHAR COLLATE "C" NOT NULL, 
	error TEXT COLLATE "C", 
	last_run BIGINT, 
	CONSTRAINT pk_connections PRIMARY KEY (id), 
	CONSTRAINT uq_connections_collection_name UNIQUE (collection, name), 
	CONSTRAINT fk_connections_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE TABLE jobs (
	id VARCHAR COLLATE "C" NOT NULL, 
	kind VARCHAR COLLATE "C" NOT NULL, 
	owner VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C", 
	title TEXT COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	arguments TEXT COLLATE "C" NOT NULL, 
	state VARCHAR COLLATE "C" NOT NULL, 
	done BIGINT NOT NULL, 
	total BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	code VARCHAR COLLATE "C", 
	error TEXT COLLATE "C", 
	result TEXT COLLATE "C", 
	started BIGINT, 
	finished BIGINT, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_jobs_collection_created_id ON jobs (collection, created, id);
CREATE INDEX ix_jobs_created_id ON jobs (created, id);
CREATE INDEX ix_jobs_state ON jobs (state);
CREATE TABLE keys (
	id VARCHAR COLLATE "C" NOT NULL, 
	"user" VARCHAR COLLATE "C" NOT NULL, 
	label VARCHAR COLLATE "C" NOT NULL, 
	hash VARCHAR COLLATE "C" NOT NULL, 
	scopes TEXT COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	expires BIGINT, 
	last_used BIGINT, 
	revoked BIGINT, 
	origin VARCHAR COLLATE "C", 
	CONSTRAINT pk_keys PRIMARY KEY (id), 
	CONSTRAINT fk_keys_user_users FOREIGN KEY("user") REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_keys_user ON keys ("user");
CREATE TABLE members (
	"group" VARCHAR COLLATE "C" NOT NULL, 
	"user" VARCHAR COLLATE "C" NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY ("group", "user"), 
	CONSTRAINT fk_members_group_groups FOREIGN KEY("group") REFERENCES groups (id) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user_users FOREIGN KEY("user") REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_members_user ON members ("user");
CREATE TABLE retentions (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	begins VARCHAR COLLATE "C" NOT NULL, 
	days FLOAT, 
	max_count BIGINT, 
	owner VARCHAR COLLATE "C" NOT NULL, 
	ran BIGINT, 
	CONSTRAINT pk_retentions PRIMARY KEY (id), 
	CONSTRAINT fk_retentions_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE INDEX ix_retentions_collection_begins ON retentions (collection, begins);
CREATE TABLE sources (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	name VARCHAR COLLATE "C" NOT NULL, 
	metadata TEXT COLLATE "C" NOT NULL, 
	kind VARCHAR COLLATE "C" DEFAULT 'manual' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT uq_sources_collection_name UNIQUE (collection, name), 
	CONSTRAINT fk_sources_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE
);
CREATE TABLE deleted_memories (
	document VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C" NOT NULL, 
	recorded BIGINT NOT NULL, 
	deleted BIGINT NOT NULL, 
	CONSTRAINT pk_deleted_memories PRIMARY KEY (document), 
	CONSTRAINT fk_deleted_memories_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_deleted_memories_source_deleted ON deleted_memories (source, deleted);
CREATE TABLE documents (
	number BIGINT NOT NULL, 
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C" NOT NULL, 
	kind VARCHAR COLLATE "C" NOT NULL, 
	key VARCHAR COLLATE "C" NOT NULL, 
	title TEXT COLLATE "C" NOT NULL, 
	content_hash VARCHAR COLLATE "C" NOT NULL, 
	fingerprint VARCHAR COLLATE "C" NOT NULL, 
	recorded BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	metadata TEXT COLLATE "C" NOT NULL, 
	author VARCHAR COLLATE "C", 
	role VARCHAR COLLATE "C", 
	occurred_start BIGINT, 
	occurred_end BIGINT, 
	sequence BIGINT, 
	parent VARCHAR COLLATE "C", 
	thread VARCHAR COLLATE "C", 
	syntax VARCHAR COLLATE "C" NOT NULL, 
	status VARCHAR COLLATE "C" NOT NULL, 
	error TEXT COLLATE "C", 
	chunks INTEGER NOT NULL, 
	characters BIGINT NOT NULL, 
	origin VARCHAR COLLATE "C" DEFAULT 'user' NOT NULL, 
	trust VARCHAR COLLATE "C" DEFAULT 'trusted' NOT NULL, 
	last_chunk BIGINT, 
	embedded_in VARCHAR COLLATE "C", 
	order_sequence BIGINT NOT NULL, 
	order_start BIGINT NOT NULL, 
	CONSTRAINT pk_documents PRIMARY KEY (number), 
	CONSTRAINT uq_documents_id UNIQUE (id), 
	CONSTRAINT uq_documents_source_key UNIQUE (source, key), 
	CONSTRAINT fk_documents_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_documents_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_documents_parent_documents FOREIGN KEY(parent) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_documents_collection_last_chunk_embedded_in ON documents (collection, last_chunk, embedded_in);
CREATE INDEX ix_documents_collection_recorded_id ON documents (collection, recorded, id);
CREATE INDEX ix_documents_latest ON documents (source, order_start, number) WHERE occurred_start IS NOT NULL AND chunks > 0;
CREATE INDEX ix_documents_longest ON documents (source, (occurred_end - occurred_start)) WHERE kind IN ('caption', 'event');
CREATE INDEX ix_documents_notes ON documents (source, number) WHERE kind = 'memory' AND thread IS NULL AND parent IS NULL;
CREATE INDEX ix_documents_parent ON documents (parent, collection, recorded, id) WHERE parent IS NOT NULL;
CREATE INDEX ix_documents_pending ON documents (collection, status, last_chunk) WHERE status = 'pending';
CREATE INDEX ix_documents_quarantined ON documents (collection, recorded, id) WHERE kind = 'quarantined';
CREATE INDEX ix_documents_remembered ON documents (source, order_start, number) WHERE kind = 'memory';
CREATE INDEX ix_documents_thread ON documents (source, thread, order_sequence, order_start, number) WHERE thread IS NOT NULL AND chunks > 0;
CREATE INDEX ix_documents_timeline ON documents (source, occurred_start, occurred_end, order_sequence, key, kind) WHERE kind IN ('caption', 'event');
CREATE INDEX ix_documents_turns ON documents (source, number) WHERE kind = 'memory' AND thread IS NOT NULL;
CREATE INDEX ix_documents_versions ON documents (collection, source) WHERE kind = 'version';
CREATE TABLE grants (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C", 
	"user" VARCHAR COLLATE "C", 
	"group" VARCHAR COLLATE "C", 
	role VARCHAR COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (id), 
	CONSTRAINT fk_grants_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_user_users FOREIGN KEY("user") REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT fk_grants_group_groups FOREIGN KEY("group") REFERENCES groups (id) ON DELETE CASCADE
);
CREATE INDEX ix_grants_collection ON grants (collection);
CREATE INDEX ix_grants_group ON grants ("group");
CREATE INDEX ix_grants_source ON grants (source);
CREATE INDEX ix_grants_user ON grants ("user");
CREATE TABLE graph_events (
	number BIGINT NOT NULL, 
	graph VARCHAR COLLATE "C" NOT NULL, 
	kind VARCHAR COLLATE "C" NOT NULL, 
	at BIGINT NOT NULL, 
	by VARCHAR COLLATE "C" NOT NULL, 
	before TEXT COLLATE "C" NOT NULL, 
	after TEXT COLLATE "C" NOT NULL, 
	reason TEXT COLLATE "C" NOT NULL, 
	undone INTEGER NOT NULL, 
	CONSTRAINT pk_graph_events PRIMARY KEY (number), 
	CONSTRAINT fk_graph_events_graph_sources FOREIGN KEY(graph) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_events_graph_number ON graph_events (graph, number);
CREATE TABLE graph_nodes (
	number BIGINT NOT NULL, 
	graph VARCHAR COLLATE "C" NOT NULL, 
	id VARCHAR COLLATE "C" NOT NULL, 
	aside BIGINT DEFAULT '0' NOT NULL, 
	type VARCHAR COLLATE "C" NOT NULL, 
	name TEXT COLLATE "C" NOT NULL, 
	aliases TEXT COLLATE "C" NOT NULL, 
	merged TEXT COLLATE "C" DEFAULT '[]' NOT NULL, 
	properties TEXT COLLATE "C" NOT NULL, 
	recorded BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	valid_from BIGINT, 
	valid_until BIGINT, 
	passing INTEGER NOT NULL, 
	CONSTRAINT pk_graph_nodes PRIMARY KEY (number), 
	CONSTRAINT uq_graph_nodes_graph_id_aside UNIQUE (graph, id, aside), 
	CONSTRAINT fk_graph_nodes_graph_sources FOREIGN KEY(graph) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_nodes_graph_aside_type_id ON graph_nodes (graph, aside, type, id);
CREATE INDEX ix_graph_nodes_id_graph ON graph_nodes (id, graph);
CREATE TABLE standing_summaries (
	source VARCHAR COLLATE "C" NOT NULL, 
	owner VARCHAR COLLATE "C" NOT NULL, 
	request TEXT COLLATE "C" NOT NULL, 
	since BIGINT NOT NULL, 
	CONSTRAINT pk_standing_summaries PRIMARY KEY (source), 
	CONSTRAINT fk_standing_summaries_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE summaries (
	id VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C" NOT NULL, 
	recipe VARCHAR COLLATE "C" NOT NULL, 
	text TEXT COLLATE "C" NOT NULL, 
	CONSTRAINT pk_summaries PRIMARY KEY (id), 
	CONSTRAINT fk_summaries_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_summaries_source_recipe ON summaries (source, recipe);
CREATE TABLE summary_borders (
	source VARCHAR COLLATE "C" NOT NULL, 
	recipe VARCHAR COLLATE "C" NOT NULL, 
	first FLOAT NOT NULL, 
	first_id VARCHAR COLLATE "C" NOT NULL, 
	last FLOAT NOT NULL, 
	last_id VARCHAR COLLATE "C" NOT NULL, 
	"full" INTEGER NOT NULL, 
	CONSTRAINT pk_summary_borders PRIMARY KEY (source, recipe, first, first_id), 
	CONSTRAINT fk_summary_borders_source_sources FOREIGN KEY(source) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE alert_events (
	number BIGINT NOT NULL, 
	alert VARCHAR COLLATE "C" NOT NULL, 
	document VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C" NOT NULL, 
	occurred_start BIGINT, 
	occurred_end BIGINT, 
	reason TEXT COLLATE "C" NOT NULL, 
	created BIGINT NOT NULL, 
	delivery VARCHAR COLLATE "C" NOT NULL, 
	attempts INTEGER NOT NULL, 
	error TEXT COLLATE "C", 
	due BIGINT, 
	CONSTRAINT pk_alert_events PRIMARY KEY (number), 
	CONSTRAINT fk_alert_events_alert_alerts FOREIGN KEY(alert) REFERENCES alerts (id) ON DELETE CASCADE, 
	CONSTRAINT fk_alert_events_document_documents FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_alert_events_alert_source_occurred_end ON alert_events (alert, source, occurred_end);
CREATE INDEX ix_alert_events_document ON alert_events (document);
CREATE INDEX ix_alert_events_pending ON alert_events (alert, due) WHERE delivery = 'pending';
CREATE TABLE chunks (
	id BIGINT NOT NULL, 
	document BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	start BIGINT NOT NULL, 
	"end" BIGINT NOT NULL, 
	tokens INTEGER NOT NULL, 
	content_hash VARCHAR COLLATE "C" NOT NULL, 
	text TEXT COLLATE "C" NOT NULL, 
	page BIGINT, 
	heading TEXT COLLATE "C", 
	CONSTRAINT pk_chunks PRIMARY KEY (id), 
	CONSTRAINT uq_chunks_document_position UNIQUE (document, position), 
	CONSTRAINT fk_chunks_document_documents FOREIGN KEY(document) REFERENCES documents (number) ON DELETE CASCADE
);
CREATE TABLE graph_edges (
	number BIGINT NOT NULL, 
	graph VARCHAR COLLATE "C" NOT NULL, 
	id VARCHAR COLLATE "C" NOT NULL, 
	aside BIGINT DEFAULT '0' NOT NULL, 
	source BIGINT NOT NULL, 
	target BIGINT NOT NULL, 
	source_id VARCHAR COLLATE "C" NOT NULL, 
	target_id VARCHAR COLLATE "C" NOT NULL, 
	type VARCHAR COLLATE "C" NOT NULL, 
	weight FLOAT NOT NULL, 
	properties TEXT COLLATE "C" NOT NULL, 
	recorded BIGINT NOT NULL, 
	updated BIGINT NOT NULL, 
	valid_from BIGINT, 
	valid_until BIGINT, 
	began BIGINT NOT NULL, 
	single INTEGER NOT NULL, 
	stands INTEGER NOT NULL, 
	closed_by BIGINT, 
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
	graph VARCHAR COLLATE "C" NOT NULL, 
	key VARCHAR COLLATE "C" NOT NULL, 
	node BIGINT NOT NULL, 
	merge BIGINT NOT NULL, 
	CONSTRAINT pk_graph_names PRIMARY KEY (graph, key, node), 
	CONSTRAINT fk_graph_names_node_graph_nodes FOREIGN KEY(node) REFERENCES graph_nodes (number) ON DELETE CASCADE
);
CREATE INDEX ix_graph_names_key_graph ON graph_names (key, graph);
CREATE INDEX ix_graph_names_node ON graph_names (node);
CREATE TABLE graph_terms (
	graph VARCHAR COLLATE "C" NOT NULL, 
	term VARCHAR COLLATE "C" NOT NULL, 
	node BIGINT NOT NULL, 
	merge BIGINT NOT NULL, 
	CONSTRAINT pk_graph_terms PRIMARY KEY (graph, term, node), 
	CONSTRAINT fk_graph_terms_node_graph_nodes FOREIGN KEY(node) REFERENCES graph_nodes (number) ON DELETE CASCADE
);
CREATE INDEX ix_graph_terms_node ON graph_terms (node);
CREATE TABLE summary_captions (
	summary VARCHAR COLLATE "C" NOT NULL, 
	document BIGINT NOT NULL, 
	CONSTRAINT pk_summary_captions PRIMARY KEY (summary, document), 
	CONSTRAINT fk_summary_captions_summary_summaries FOREIGN KEY(summary) REFERENCES summaries (id) ON DELETE CASCADE, 
	CONSTRAINT fk_summary_captions_document_documents FOREIGN KEY(document) REFERENCES documents (number) ON DELETE CASCADE
);
CREATE INDEX ix_summary_captions_document ON summary_captions (document);
CREATE TABLE summary_parts (
	summary VARCHAR COLLATE "C" NOT NULL, 
	part VARCHAR COLLATE "C" NOT NULL, 
	CONSTRAINT pk_summary_parts PRIMARY KEY (summary, part), 
	CONSTRAINT fk_summary_parts_summary_summaries FOREIGN KEY(summary) REFERENCES summaries (id) ON DELETE CASCADE, 
	CONSTRAINT fk_summary_parts_part_summaries FOREIGN KEY(part) REFERENCES summaries (id) ON DELETE CASCADE
);
CREATE INDEX ix_summary_parts_part ON summary_parts (part);
CREATE TABLE feedback (
	id VARCHAR COLLATE "C" NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	chunk BIGINT NOT NULL, 
	"user" VARCHAR COLLATE "C" NOT NULL, 
	query TEXT COLLATE "C" NOT NULL, 
	used BIGINT NOT NULL, 
	space VARCHAR COLLATE "C", 
	vector BYTEA, 
	created BIGINT NOT NULL, 
	CONSTRAINT pk_feedback PRIMARY KEY (id), 
	CONSTRAINT fk_feedback_collection_collections FOREIGN KEY(collection) REFERENCES collections (id) ON DELETE CASCADE, 
	CONSTRAINT fk_feedback_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
);
CREATE INDEX ix_feedback_chunk ON feedback (chunk);
CREATE INDEX ix_feedback_collection_created_id ON feedback (collection, created, id);
CREATE INDEX ix_feedback_user ON feedback ("user");
CREATE TABLE graph_evidence (
	number BIGINT NOT NULL, 
	edge BIGINT NOT NULL, 
	document VARCHAR COLLATE "C" NOT NULL, 
	merge BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_graph_evidence PRIMARY KEY (number), 
	CONSTRAINT uq_graph_evidence_edge_document UNIQUE (edge, document), 
	CONSTRAINT fk_graph_evidence_edge_graph_edges FOREIGN KEY(edge) REFERENCES graph_edges (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_evidence_document_documents FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE INDEX ix_graph_evidence_document ON graph_evidence (document);
CREATE TABLE graph_moves (
	event BIGINT NOT NULL, 
	edge BIGINT NOT NULL, 
	source BIGINT NOT NULL, 
	target BIGINT NOT NULL, 
	CONSTRAINT pk_graph_moves PRIMARY KEY (event, edge), 
	CONSTRAINT fk_graph_moves_event_graph_events FOREIGN KEY(event) REFERENCES graph_events (number) ON DELETE CASCADE, 
	CONSTRAINT fk_graph_moves_edge_graph_edges FOREIGN KEY(edge) REFERENCES graph_edges (number) ON DELETE CASCADE
);
CREATE INDEX ix_graph_moves_edge ON graph_moves (edge);
CREATE TABLE mentions (
	chunk BIGINT NOT NULL, 
	key VARCHAR COLLATE "C" NOT NULL, 
	surface TEXT COLLATE "C" NOT NULL, 
	type VARCHAR COLLATE "C" NOT NULL, 
	start BIGINT NOT NULL, 
	"end" BIGINT NOT NULL, 
	collection VARCHAR COLLATE "C" NOT NULL, 
	source VARCHAR COLLATE "C" NOT NULL, 
	CONSTRAINT pk_mentions PRIMARY KEY (chunk, key), 
	CONSTRAINT fk_mentions_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
);
CREATE INDEX ix_mentions_about ON mentions (collection, key, source, chunk) WHERE type = 'subject';
CREATE INDEX ix_mentions_collection_key_source_chunk_type ON mentions (collection, key, source, chunk, type);
CREATE TABLE vectors (
	chunk BIGINT NOT NULL, 
	space VARCHAR COLLATE "C" NOT NULL, 
	vector BYTEA NOT NULL, 
	CONSTRAINT pk_vectors PRIMARY KEY (chunk, space), 
	CONSTRAINT fk_vectors_chunk_chunks FOREIGN KEY(chunk) REFERENCES chunks (id) ON DELETE CASCADE
);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('change', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('chunk', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('document', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('alert_event', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_node', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_edge', '', 0, 9223372036854775807);
INSERT INTO counters (name, "collection", "value", "end") VALUES ('graph_event', '', 0, 9223372036854775807);
