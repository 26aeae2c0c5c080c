import { isRecord } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';

const PRESERVES = 'x-kubernetes-preserve-unknown-fields';

/**
 * Finds a field that objects may have by one schema of a definition and not by another: the API server prunes it from every
 * object that is written after the change. Within a version our schemas only grow, so an older one of ours has none.
 * @param before the schema that is installed, as the API server answered
 * @returns its path, `.*` at the end stands for all unknown fields; undefined: none
 */
export function findPrunedField(before: unknown, after: unknown, path = ''): string | undefined {
  const [old, next] = [recordOf(before), recordOf(after)];
  if (next[PRESERVES] === true) return undefined;
  if (old[PRESERVES] === true) return `${path}.*`;
  const fields = recordOf(next['properties']);
  const others = next['additionalProperties'];
  const takesOthers = isRecord(others) || others === true;
  for (const [name, schema] of Object.entries(recordOf(old['properties']))) {
    const at = path === '' ? name : `${path}.${name}`;
    // Of each object, whatever a schema says of it.
    if (at === 'metadata' || at === 'apiVersion' || at === 'kind') continue;
    if (!Object.hasOwn(fields, name) && !takesOthers) return at;
    const found = findPrunedField(schema, fields[name] ?? others, at);
    if (found !== undefined) return found;
  }
  const unnamed = old['additionalProperties'];
  if (isRecord(unnamed) || unnamed === true) {
    if (!takesOthers) return `${path}.*`;
    const found = findPrunedField(unnamed, others, `${path}.*`);
    if (found !== undefined) return found;
  }
  return isRecord(old['items']) ? findPrunedField(old['items'], next['items'], `${path}[]`) : undefined;
}
