import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import type { ModelEip } from '../../sim/vpc/api/model/types.ts';

/** What of a system says where its EIPs are. */
type EipBooks = {
  readonly eips: readonly ModelEip[];
  /** Of EIPClaims, as the store has them. */
  readonly claims: readonly KubeObject[];
  /** Addresses of Pods that live, by `namespace/name`. */
  readonly podIps: ReadonlyMap<string, string>;
};

/** Plural of the claims that are judged. */
export const EIP_CLAIMS = EIP_CLAIM_KIND.plural;

/**
 * Compares the cloud's EIPs with the EIPClaims and the Pods at a quiet moment: each EIP is of one claim, and bound where the
 * claim says and its Pod is; one that is retained is bound to nothing. Returns what is wrong, one line each.
 */
export function findEipFaults({ eips, claims, podIps }: EipBooks): readonly string[] {
  const seen = claims.map(seenClaim);
  return [
    ...eips.flatMap(({ eipId, publicIp }) => {
      const owners = seen.filter((claim) => claim.eipId === eipId).map(({ key }) => key);
      return owners.length === 1
        ? []
        : [`cloud: EIP ${eipId} (${publicIp}) is of ${owners.length === 0 ? 'no claim' : owners.join(' and ')}`];
    }),
    ...seen.flatMap((claim) => claimFaults(claim, eips, podIps.get(claim.key))),
  ];
}

type SeenClaim = { readonly key: string; readonly eipId: string; readonly phase: string; readonly status: JsonObject };

function seenClaim({ metadata, status }: KubeObject): SeenClaim {
  const fields = isObject(status) ? status : {};
  const key = `${metadata.namespace}/${metadata.name}`;
  return { key, eipId: String(fields['eipID'] ?? ''), phase: String(fields['phase'] ?? ''), status: fields };
}

function claimFaults(claim: SeenClaim, eips: readonly ModelEip[], podIp: string | undefined): readonly string[] {
  const { key, eipId, phase, status } = claim;
  const eip = eips.find((one) => one.eipId === eipId);
  if (eip === undefined) return [`EIPClaim ${key}: it is ${phase}, and the cloud has no EIP '${eipId}'`];
  const where = eip.binding === undefined ? 'nothing' : `${eip.binding.ip} of ${eip.binding.eniId}`;
  if (phase === 'Retained' && podIp === undefined)
    return eip.binding === undefined ? [] : [`EIPClaim ${key}: it is Retained, ${eipId} is bound to ${where}`];
  if (phase !== 'Bound') return [`EIPClaim ${key}: it is ${phase} at a quiet moment`];
  const wanted = `${String(status['privateIP'])} of ${String(status['eniID'])}`;
  return [
    ...(where === wanted ? [] : [`EIPClaim ${key}: ${eipId} is bound to ${where}, not to ${wanted}`]),
    ...(podIp === status['privateIP']
      ? []
      : [`EIPClaim ${key}: it is Bound to ${String(status['privateIP'])}, its Pod has ${podIp ?? 'none'}`]),
    ...(eip.publicIp === status['publicIP'] ? [] : [`EIPClaim ${key}: its address is ${eip.publicIp} in the cloud`]),
  ];
}
