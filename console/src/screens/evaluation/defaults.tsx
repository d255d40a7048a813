/** The defaults that a run gave the searches of a collection, with an undo. */
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { instant } from "../../ui/format";

export function Defaults({ collection, onChanged }: { collection: Schemas["Collection"]; onChanged: () => void }) {
  const { act, busy, failure } = useAction();
  const { name, retrieval } = collection;
  if (retrieval === null) return null;
  const { version, options, created } = retrieval;
  const described = Object.entries(options).map(([option, setting]) => `${option} ${JSON.stringify(setting)}`);
  return (
    <div class="panel row after" role="status">
      <span>
        Searches of <bdi>{name}</bdi> have new defaults since {instant(created)}: {described.join(", ") || "the built-in ones"}{" "}
        (version {version}).
      </span>
      <button
        class="btn compact"
        type="button"
        disabled={busy}
        onClick={() => act(() => api.undoDefaults({ collection: name, version }), onChanged)}
      >
        Undo
      </button>
      <Failure text={failure} />
    </div>
  );
}
