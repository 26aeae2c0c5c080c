import { finding } from '../../../../inspection/catalogue/catalogue.ts';
import { eniId, linkId, podId, routeId, ruleId } from '../../../../inspection/catalogue/element-id.ts';
import type { Explanation, Hop } from '../../../../inspection/explain/explanation.ts';
import { findEnis } from '../../../../inspection/node/find-enis.ts';
import { joinPods } from '../../../../inspection/node/join-pods.ts';
import type { NodeFacts, PodReading } from '../../../../inspection/node/node-facts.ts';
import { ruleElement } from '../../../../inspection/node/rule-selector.ts';

/** Where the packets of the made-up explanations go to, and come from. */
const PEER = '10.0.9.9';

/** Explains a Pod of a fixture by hand, both directions, IPv4; with `isBroken` the rule of its mark is said to be missing. */
export function explanationFixture(facts: NodeFacts, pod: PodReading, isBroken = false): Explanation {
  const joined = joinPods(facts).find((each) => each.pod.key === pod.key);
  if (joined === undefined) throw new Error(`fixture: ${pod.key} is no Pod of the node`);
  const {
    lease,
    title,
    hostLink: veth,
    ips: [ip = ''],
  } = joined;
  const eni = findEnis(facts.host, facts.agent).find(({ table }) => table === veth?.group);
  if (veth === undefined || eni === undefined) throw new Error(`fixture: ${pod.key} has no veth or no ENI`);
  const rule = facts.host.rules.find(({ table, priority }) => table === eni.table && priority === 1536);
  const missing = finding('rule-missing', {
    what: `rule 1536 for mark 0x${(eni.slot ?? 0).toString(16)}0000 of ${eni.eniId} is not there`,
    fix: ['tke-eni repair'],
    subjects: [ruleId(4, 1536, `from all fwmark 0x${(eni.slot ?? 0).toString(16)}0000/0xff0000`)],
  });
  const hop = (kind: Hop['kind'], element: string, title: string): Hop => ({
    kind,
    element,
    title,
    details: [`seen: ${title}`],
    verdict: 'ok',
  });
  const out: readonly Hop[] = [
    hop('pod', podId(pod.key), `${title} sends from ${ip}`),
    hop('neigh', linkId(2, pod.key), '169.254.1.1 is the host veth'),
    hop('veth', linkId(veth.ifindex), `in by ${veth.ifname}`),
    hop('sysctl', `sysctl:net.ipv4.conf.${veth.ifname}.rp_filter`, 'rp_filter 1 lets it in'),
    hop('nft', 'nft:tke_eni', `nftables marks it for table ${eni.table}`),
    isBroken
      ? {
          ...hop('rule', missing.subjects[0] ?? '', `rule 1536: no rule for the mark`),
          verdict: 'broken',
          finding: missing,
        }
      : hop('rule', rule === undefined ? '' : ruleElement(rule), `rule 1536 lookup ${eni.table}`),
    hop('route', routeId(eni.table, '0.0.0.0/0'), `default via the gateway in table ${eni.table}`),
    hop('eni', eniId(eni.eniId ?? ''), `out by ${eni.ifname}`),
    hop('cloud', `cloud:${ip}`, `the VPC takes ${ip} from ${eni.eniId}`),
  ];
  const into: readonly Hop[] = [
    hop('cloud', `cloud:${ip}`, `the VPC brings ${ip} to ${eni.eniId}`),
    hop('link', linkId(eni.ifindex ?? 0), `in by ${eni.ifname}`),
    hop('rule', ruleId(4, 512, 'from all'), 'rule 512 lookup tke-pods'),
    hop('route', routeId(3999, `${ip}/32`), `${ip} dev ${veth.ifname}`),
    hop('veth', linkId(veth.ifindex), `out by ${veth.ifname}`),
    hop('pod', podId(pod.key), `${title} has ${ip}`),
  ];
  return {
    subject: `Pod ${title}, eth0, ${ip} on ${lease?.eniId ?? eni.ifname}`,
    element: podId(pod.key),
    paths: [
      { direction: 'from-pod', from: ip, to: PEER, hops: out },
      { direction: 'to-pod', from: PEER, to: ip, hops: into },
    ],
    findings: isBroken ? [missing] : [],
  };
}
