import { recordOf, textOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';

/** Q2 for EIPs: those with our tag are those of claims, both ways, and a claim of a Pod has one. */
export const openEipsAreClaims: OpenAuditor = (world) => ({
  name: 'Q2',
  rest: function* () {
    const claimed = new Map(
      world.objects('eipclaims').map(({ metadata, status }) => [textOf(recordOf(status)['eipID']), metadata.name]),
    );
    for (const { eipId, tags, binding } of world.host.model.state.eips.values()) {
      if (tags['tke-created-eip'] === undefined) continue;
      const name = claimed.get(eipId);
      if (name === undefined) yield `${eipId} is of no claim`;
      claimed.delete(eipId);
      const pod = world.objects('pods').find(({ metadata }) => metadata.name === name);
      const ip = recordOf(pod?.['status'])['podIP'];
      if (pod !== undefined && binding?.ip !== ip) yield `${eipId} of ${name} is bound to ${binding?.ip}, not to ${ip}`;
      if (pod === undefined && binding !== undefined) yield `${eipId} is bound, and ${name} is gone`;
    }
    for (const [eipId, name] of claimed) if (eipId !== '') yield `${name} has ${eipId}, which is not in the cloud`;
  },
});
