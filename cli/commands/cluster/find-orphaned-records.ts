import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { eniId as eniSubject } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NecAddress } from './build-address-index.ts';
import type { ClusterFacts, ClusterPod, ClusterVip } from './cluster-facts.ts';

/** Returns records of Pods, ENIs and nodes that do not exist, and records that place an address on the wrong ENI. */
export function findOrphanedRecords(
  facts: ClusterFacts,
  index: ReadonlyMap<string, readonly NecAddress[]>,
  graceMs: number,
): readonly Finding[] {
  const isOld = (createdMs: number) => facts.takenAtMs - createdMs >= graceMs;
  const vips = (ifKnown(facts.vips) ?? []).filter(({ isEnis, createdMs }) => !isEnis && isOld(createdMs));
  return [
    ...vips.flatMap((vip) => misplaced(vip, index.get(vip.ip) ?? [])),
    ...(facts.pods.kind === 'known' ? orphansOfPods(facts, facts.pods.value, vips, isOld) : []),
    ...(facts.nodes.kind === 'known'
      ? orphansOfNodes(facts, new Set(facts.nodes.value.map(({ key }) => key)), isOld)
      : []),
  ];
}

function misplaced(vip: ClusterVip, entries: readonly NecAddress[]): readonly Finding[] {
  const isRight = entries.length === 0 || vip.eniId === '' || entries.some(({ eniId }) => eniId === vip.eniId);
  if (isRight) return [];
  const locations = entries.map(({ eniId, nodeName }) => `${eniId} of ${nodeName}`).join(' and ');
  return [
    finding('record-disagrees', {
      what: `VpcIP ${vip.key} places ${vip.ip} on ${vip.eniId}, the NodeENIConfig on ${locations}`,
      fix: [`kubectl describe vip ${vip.key}`],
      subjects: [`vip:${vip.key}`],
    }),
  ];
}

function orphansOfPods(
  facts: ClusterFacts,
  pods: readonly ClusterPod[],
  vips: readonly ClusterVip[],
  isOld: (createdMs: number) => boolean,
): readonly Finding[] {
  const byKey = new Map(pods.map((pod) => [pod.key, pod]));
  const claims = ifKnown(facts.claims);
  const claimed = claims === undefined ? undefined : new Set(claims.map(({ key }) => key));
  const isDeleted = (key: string, uid: string) => {
    const pod = byKey.get(key);
    return pod === undefined || (uid !== '' && pod.uid !== uid);
  };
  return [
    ...vips.flatMap((vip) => vipFindings(vip, byKey.get(vip.podKey), claimed)),
    ...(claims ?? [])
      .filter((claim) => !claim.isRetained && isOld(claim.createdMs) && isDeleted(claim.key, claim.podUid))
      .map(({ key }) => orphanedObject('VpcIPClaim', 'vipc', key)),
    ...(ifKnown(facts.eips) ?? [])
      .filter((eip) => !eip.isRetained && isOld(eip.createdMs) && isDeleted(eip.key, ''))
      .map(({ key }) => orphanedObject('EIPClaim', 'eipc', key)),
    ...(ifKnown(facts.venis) ?? [])
      .filter(
        ({ podKey, isRetained, createdMs }) =>
          podKey !== '' && !isRetained && isOld(createdMs) && isDeleted(podKey, ''),
      )
      .map(({ key, podKey, eniId }) =>
        finding('eni-object-stray', {
          what: `VpcENI ${key} keeps ${eniId === '' ? 'an ENI' : eniId} for Pod ${podKey}, which is not there`,
          fix: [`kubectl describe veni ${key}`],
          subjects: [`veni:${key}`],
        }),
      ),
  ];
}

function vipFindings(
  vip: ClusterVip,
  pod: ClusterPod | undefined,
  claimed: ReadonlySet<string> | undefined,
): readonly Finding[] {
  if (vip.podKey === '') return [];
  // The address is retained for a later Pod of this name; the claim has the time limit.
  if (vip.podUid === '')
    return claimed === undefined || claimed.has(vip.podKey) ? [] : [orphanedVip(vip, 'it is kept for')];
  if (pod === undefined) return [orphanedVip(vip, 'it is of')];
  if (pod.uid !== vip.podUid) return [orphanedVip(vip, 'it is of an earlier')];
  if (pod.ips.length === 0 || pod.ips.includes(vip.ip)) return [];
  return [
    finding('record-disagrees', {
      what: `VpcIP ${vip.key} gives ${vip.ip} to Pod ${vip.podKey}, which has ${pod.ips.join(', ')}`,
      fix: [`kubectl describe vip ${vip.key}`],
      subjects: [`vip:${vip.key}`],
    }),
  ];
}

function orphanedVip(vip: ClusterVip, how: string): Finding {
  return finding('record-without-pod', {
    what: `VpcIP ${vip.key} holds ${vip.ip}: ${how} Pod ${vip.podKey}, which is not there`,
    fix: [`kubectl describe vip ${vip.key}`, `kubectl delete vip ${vip.key}`],
    subjects: [`vip:${vip.key}`],
  });
}

function orphanedObject(kind: string, short: string, key: string): Finding {
  const [namespace = '', name = ''] = key.split('/');
  return finding('record-without-pod', {
    what: `${kind} ${key} is of a Pod that is not there`,
    fix: [`kubectl -n ${namespace} describe ${short} ${name}`, `kubectl -n ${namespace} delete ${short} ${name}`],
    subjects: [`${short}:${key}`],
  });
}

function orphansOfNodes(
  facts: ClusterFacts,
  nodes: ReadonlySet<string>,
  isOld: (createdMs: number) => boolean,
): readonly Finding[] {
  return [
    ...facts.necs
      .filter(
        ({ key, createdMs, deletionRequestedMs }) =>
          !nodes.has(key) && deletionRequestedMs === undefined && isOld(createdMs),
      )
      .map(({ key, status }) =>
        finding('node-config-stray', {
          what: `NodeENIConfig ${key} has ${status.eniInfos?.length ?? 0} ENIs, and there is no Node ${key}`,
          fix: [`kubectl describe nec ${key}`],
          subjects: [`nec:${key}`],
        }),
      ),
    ...(ifKnown(facts.venis) ?? [])
      .filter(({ nodeName, createdMs }) => nodeName !== '' && !nodes.has(nodeName) && isOld(createdMs))
      .map(({ key, nodeName, eniId }) =>
        finding('eni-object-stray', {
          what: `VpcENI ${key} is on node ${nodeName}, which is not there`,
          fix: [`kubectl describe veni ${key}`],
          subjects: [`veni:${key}`, ...(eniId === '' ? [] : [eniSubject(eniId)])],
        }),
      ),
  ];
}
