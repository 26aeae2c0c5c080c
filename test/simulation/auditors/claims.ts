import { POD_ANNOTATION, RECORD_LABEL } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { recordOf, textOf, textsOf } from '../../../runtime/json.ts';
import { isOfWrongWriter, type OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/** Q2 for what is kept: at rest claims, their VpcIPs and the marks on addresses are the same, and a Pod has what its claim says. */
export const openClaimsAreMarks: OpenAuditor = (world) => ({
  name: 'Q2',
  rest: function* () {
    // Others are records of Pods whose addresses are of the pool.
    const kept = world.objects('vpcipclaims').filter((claim) => !isRecord(claim));
    const claims = new Map(kept.map(({ metadata, status }) => [metadata.name, recordOf(status)]));
    // An exclusive ENI has a VpcENI in place of a VpcIP.
    const enis = new Map(
      world.objects('vpcenis').map(({ spec, status }) => [recordOf(status)['primaryIP'], claimedBy(spec)]),
    );
    const all = new Set(world.objects('vpcipclaims').map(({ metadata }) => metadata.name));
    const vips = new Map(world.objects('vpcips').map(({ metadata, spec }) => [metadata.name, claimedBy(spec)]));
    const pods = new Set(world.objects('pods').map(({ metadata }) => metadata.name));
    for (const { metadata, spec } of world.objects('vpcips').filter(isRecord))
      if (!pods.has(claimedBy(spec)) && !isOfWrongWriter(claimedBy(spec)))
        yield `VpcIP ${metadata.name} records the Pod ${claimedBy(spec)}, which is gone`;
    const records = new Set(
      world
        .objects('vpcips')
        .filter(isRecord)
        .map(({ metadata }) => metadata.name),
    );
    for (const [ip, name] of [...vips].filter(([each]) => !records.has(each)))
      if (name !== '' && !all.has(name) && !isOfWrongWriter(name)) yield `VpcIP ${ip} is of no claim`;
    for (const [name, { ips }] of claims)
      for (const ip of textsOf(ips))
        if (vips.get(ip) !== name && enis.get(ip) !== name && !isOfWrongWriter(name))
          yield `${name} has ${ip}, which has no VpcIP or VpcENI of it`;
    for (const object of world.objects('nodeeniconfigs'))
      for (const { addresses = [] } of necFacts(object).status.eniInfos ?? [])
        for (const { ip, claim } of addresses)
          if (claim !== undefined && !claims.has(claim.name)) yield `${ip} is marked for ${claim.name}, which is gone`;
    for (const { metadata, status } of world.objects('pods')) {
      if (metadata.annotations?.[POD_ANNOTATION.deletePolicy] !== 'Never') continue;
      const ip = recordOf(status)['podIP'];
      const { phase, ips } = claims.get(metadata.name) ?? {};
      if (ip !== undefined && (phase !== 'Bound' || !textsOf(ips).includes(textOf(ip))))
        yield `${metadata.name} has ${textOf(ip)}, its claim is ${textOf(phase)} with ${textsOf(ips).join()}`;
    }
  },
});

function isRecord({ metadata }: KubeObject): boolean {
  return metadata.labels?.[RECORD_LABEL.key] !== undefined;
}

function claimedBy(spec: unknown): string {
  return textOf(recordOf(recordOf(spec)['claimRef'])['name']);
}
