import type { FieldOwner } from '../../../crd/field.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { recordOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { OpenAuditor } from './auditor.ts';

/** The fields of each kind by their paths, with their owners. */
const FIELDS = new Map(
  RESOURCE_KINDS.map(({ plural, fields }) => [
    plural,
    Object.entries(fields).flatMap(([part, { value }]) =>
      Object.entries(value.fields ?? {}).map(([field, { owner }]) => ({ part, field, owner })),
    ),
  ]),
);

/** Who may change what: ipamd its own fields and those of a policy, each other program its own. */
const WRITERS: readonly { readonly prefix: string; readonly owners: readonly (FieldOwner | undefined)[] }[] = [
  { prefix: 'agent-', owners: ['agent'] },
  { prefix: 'ipamd-', owners: ['ipamd', 'policy'] },
  { prefix: 'ccm-', owners: ['ccm'] },
  { prefix: 'extender-', owners: ['scheduler'] },
];

/** A10: a program changes only its own fields of our objects. */
export const openOwnFields: OpenAuditor = (world) => ({
  name: 'A10',
  change: (plural, { object, previous, type }) => {
    const writer = WRITERS.find(({ prefix }) => world.writer.startsWith(prefix));
    if (type !== 'MODIFIED' || previous === undefined || writer === undefined) return;
    for (const { part, field, owner } of FIELDS.get(plural) ?? [])
      if (!writer.owners.includes(owner) && fieldOf(object, part, field) !== fieldOf(previous, part, field))
        world.violate('A10', `${world.writer} changes ${part}.${field} of ${plural}, which is of ${owner}`);
  },
});

function fieldOf(object: KubeObject, part: string, field: string): string {
  return JSON.stringify(recordOf(object[part])[field]) ?? '';
}
