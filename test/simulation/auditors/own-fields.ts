import { LOAD_BALANCERS, SPEC, STATUS } from '../../../crd/node-eni-config-fields.ts';
import { recordOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { OpenAuditor } from './auditor.ts';

const OWNERS = new Map(
  Object.entries({ spec: SPEC, status: STATUS, loadBalancers: LOAD_BALANCERS }).flatMap(([part, fields]) =>
    Object.entries(fields).map(([field, { owner }]) => [`${part}.${field}`, owner] as const),
  ),
);

/** Who may change what of a NodeENIConfig: an agent its own fields, ipamd its own and those of a policy, the cloud controller manager its own. */
const WRITERS = [
  { prefix: 'agent-', owners: ['agent'] },
  { prefix: 'ipamd-', owners: ['ipamd', 'policy'] },
  { prefix: 'ccm-', owners: ['ccm'] },
] as const;

/** A10: a program changes only its own fields of a NodeENIConfig. */
export const openOwnFields: OpenAuditor = (world) => ({
  name: 'A10',
  change: (plural, { object, previous, type }) => {
    const writer = WRITERS.find(({ prefix }) => world.writer.startsWith(prefix));
    if (plural !== 'nodeeniconfigs' || type !== 'MODIFIED' || previous === undefined || writer === undefined) return;
    const owners: readonly (string | undefined)[] = writer.owners;
    for (const [field, owner] of OWNERS)
      if (!owners.includes(owner) && fieldOf(object, field) !== fieldOf(previous, field))
        world.violate('A10', `${world.writer} changes ${field}, which is of ${owner}`);
  },
});

function fieldOf(object: KubeObject, path: string): string {
  const [part = '', field = ''] = path.split('.');
  return JSON.stringify(recordOf(object[part])[field]) ?? '';
}
