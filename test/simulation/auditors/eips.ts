import { EIP_TAG } from '../../../crd/cloud-tags.ts';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';

/**
 * A16 for EIPs: a claim has one, and only what was made for a claim is released. Q2: those that were made are those of claims,
 * both ways; at rest a Pod has the EIP of its claim, and is told its address, or its claim or an event says why not.
 */
export const openEipsAreClaims: OpenAuditor = (world) => {
  const eips = () => [...world.host.model.state.eips.values()];
  return {
    name: 'Q2',
    arrives: ({ action, params }) => {
      if (action !== 'ReleaseAddresses') return;
      for (const eipId of textsOf(params['AddressIds'])) {
        const eip = world.host.model.state.eips.get(eipId);
        if (eip !== undefined && !eip.tags[EIP_TAG.claim])
          world.violate('A16', `${eipId} is released, and is of others`);
      }
    },
    step: () => {
      const made = eips().filter(({ status, tags }) => status !== 'OFFLINING' && tags[EIP_TAG.claim]);
      for (const [claim, { length }] of Map.groupBy(made, ({ tags }) => tags[EIP_TAG.claim]))
        if (length > 1) world.violate('A16', `${claim} has ${length} EIPs`);
    },
    rest: function* () {
      const claims = new Map(
        world.objects('eipclaims').map((claim) => [claim.metadata.name, recordOf(claim['status'])]),
      );
      const pods = new Map(world.objects('pods').map((pod) => [pod.metadata.name, pod]));
      const claimed = new Map([...claims].map(([name, { eipID }]) => [textOf(eipID), name]));
      for (const { eipId, tags, binding } of eips()) {
        const name = claimed.get(eipId);
        if (name === undefined && tags[EIP_TAG.claim]) yield `${eipId} is of no claim`;
        claimed.delete(eipId);
        if (name !== undefined && !pods.has(name) && binding !== undefined)
          yield `${eipId} is bound, and ${name} is gone`;
      }
      for (const [eipId, name] of claimed) if (eipId !== '') yield `${name} has ${eipId}, which is not in the cloud`;
      for (const [name, { metadata, status }] of pods) {
        const { eipAttributes, eipIdList, eipPublicIp } = POD_ANNOTATION;
        const { [eipAttributes]: made, [eipIdList]: listed, [eipPublicIp]: said } = metadata.annotations ?? {};
        const eip = eips().find(({ eipId }) => eipId === claims.get(name)?.['eipID']);
        const isServed = eip?.binding?.ip === recordOf(status)['podIP'] && eip?.publicIp === said;
        const isTold = recordsOf(claims.get(name)?.['conditions']).some((one) => one['status'] === 'False');
        const isWrong = world
          .objects('events')
          .some((event) => event['reason'] === 'EIPInvalid' && recordOf(event['involvedObject'])['name'] === name);
        const mbps = /"InternetMaxBandwidthOut":(\d+)/.exec(made ?? '')?.[1];
        if (eip?.tags[EIP_TAG.claim] && mbps !== undefined && eip.bandwidthMbps !== Number(mbps))
          yield `${name} asks for ${mbps} Mbps, and has ${eip.bandwidthMbps}`;
        if ((made ?? listed) !== undefined && !isServed && !isTold && !isWrong) yield `${name} has no EIP`;
      }
    },
  };
};
