import { familyOf } from '../../agent/journal/lease.ts';
import { canonicalAddress, isAddress } from '../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue.ts';
import { CliError } from '../cli-error.ts';
import { byGravity, type Finding, uniqueFindings } from '../finding.ts';
import { eniId, podId, routeId } from '../node/element-id.ts';
import { findPod } from '../node/find-pod.ts';
import type { Explanation, Hop, Path } from './explanation.ts';
import { gravest, hopOf } from './find-hop.ts';
import { leadsFromPrimary } from './find-leads.ts';
import { eniHop } from './find-link-hops.ts';
import { ownEniText } from './find-own-eni.ts';
import { looksLikeAddress, packetAddress } from './find-packet-address.ts';
import { type End, endOf, endText, pathFromPod, pathToPod, targetOf } from './find-paths.ts';
import { findRouting } from './find-routing-hops.ts';
import { findService, type Service } from './find-service.ts';
import { serviceHop } from './find-service-hop.ts';
import { type EniView, nodeAddresses, type PodView, podOfIp, type Situation } from './find-situation.ts';
import { routeText } from './find-text.ts';

/**
 * Public addresses that stand for the outside when the user names none. Which ones does not matter: no packet is sent.
 */
const OUTSIDE = { 4: '1.1.1.1', 6: '2606:4700:4700::1111' } as const;

/** What the user asks. */
export type ExplainQuestion = {
  readonly subject: string;
  readonly to: string | undefined;
  readonly from: string | undefined;
};

/**
 * Explains how packets of a Pod go, both ways. For an ENI's own address, or an address that no Pod of this node has, it
 * explains what the node does with such packets.
 * @throws CliError USAGE, NOT_FOUND
 */
export function findExplanation(situation: Situation, question: ExplainQuestion): Explanation {
  const { subject: word } = question;
  const to = question.to === undefined ? undefined : packetAddress('--to', question.to);
  const from = question.from === undefined ? undefined : packetAddress('--from', question.from);
  const ends = { to, from };
  // An IPv6 address can be written in several ways.
  const name = canonicalAddress(word);
  const eni = situation.enis.find(({ eniId: id, ifname, addresses }) => [id, ifname, ...addresses].includes(name));
  if (eni !== undefined) return explainEni(situation, eni, name, ends);
  if (isAddress(word) && situation.pods.every(({ ips }) => !ips.includes(name))) {
    return explainAddress(situation, packetAddress('', word), ends);
  }
  const view = viewOf(situation, name);
  return explainPod(situation, view, isAddress(word) ? name : undefined, ends);
}

function viewOf(situation: Situation, name: string): PodView {
  try {
    const found = findPod(situation.facts, name);
    const view = situation.pods.find(({ pod }) => pod.key === found.key);
    if (view !== undefined) return view;
  } catch (error) {
    if (looksLikeAddress(name)) packetAddress('', name);
    throw error;
  }
  throw new CliError('NOT_FOUND', `no Pod ${name}`, 'tke-eni pods');
}

type Ends = { readonly to: string | undefined; readonly from: string | undefined };

/**
 * Requires that all named addresses are of one family, so that none of them is ignored silently.
 * @throws CliError USAGE
 */
function oneFamily(named: readonly (string | undefined)[]): void {
  const addresses = named.filter((ip) => ip !== undefined);
  if (new Set(addresses.map(familyOf)).size < 2) return;
  throw new CliError('USAGE', `${addresses.join(' and ')} are not of one family`, 'name addresses of one family');
}

/** @param asked the address that names the Pod; undefined: all addresses of the Pod are explained */
function explainPod(situation: Situation, view: PodView, asked: string | undefined, ends: Ends): Explanation {
  const eni = view.hasOwnEni ? ownEniText(view) : (view.eni?.title ?? 'an unknown ENI');
  const wanted = [ends.to, ends.from].find((ip) => ip !== undefined);
  const named = [asked, ends.to, ends.from].filter((ip) => ip !== undefined);
  oneFamily(named);
  const ips = view.ips.filter((ip) => named.every((each) => familyOf(each) === familyOf(ip)));
  if (ips.length === 0) {
    const message = `${view.title} has no address to explain${wanted === undefined ? '' : ` of the family of ${wanted}`}`;
    throw new CliError('NOT_FOUND', message, `its addresses: ${view.ips.join(', ') || 'none'}`);
  }
  const paths = ips.flatMap((ip) => pathsOfPod(situation, view, ip, ends));
  return {
    subject: `Pod ${view.title}, ${view.ifName}, ${view.ips.join(' and ')} on ${eni}`,
    element: podId(view.pod.key),
    paths,
    findings: findingsOf(paths, tableCollisions(situation, view)),
  };
}

/**
 * Finds routes of other programs in the table of the Pod's ENI. They match some packets, even if not those explained
 * here.
 */
function tableCollisions({ facts }: Situation, { eni }: PodView): readonly Finding[] {
  const { routes, links } = facts.host;
  return routes
    .filter(({ table, protocol }) => table === eni?.table && protocol !== RTPROT_TKE_ENI)
    .map((route) =>
      finding('table-collision', {
        what: `"${routeText(route, links)}" (protocol ${route.protocol}) in the table of ${eni?.title} is not ours`,
        fix: [`ip route del ${routeText(route, links)}`, 'stop the program that adds it'],
        subjects: [routeId(route.table, route.dst ?? 'default')],
        severity: 'warning',
      }),
    );
}

function pathsOfPod(situation: Situation, view: PodView, ip: string, { to, from }: Ends): readonly Path[] {
  // With both options the Pod sends, and `--from` is the source address that it uses.
  if (to !== undefined && from !== undefined)
    return [pathFromPod(situation, view, from, targetOf(situation, view, to))];
  const other = to ?? from;
  if (other !== undefined) {
    const target = targetOf(situation, view, other);
    const there = pathFromPod(situation, view, ip, target);
    // A packet from a Pod to itself needs no way back. The host that answers for a Service without a backend is not
    // known.
    if (view.ips.includes(other) || (target.service?.isKubeProxy === true && !target.service.isWalked)) return [there];
    const back = pathToPod(situation, view, ip, target.to);
    return to === undefined ? [back, there] : [there, back];
  }
  const family = familyOf(ip);
  const outside = endOf(situation, OUTSIDE[family]);
  const neighbour = otherPod(situation, view, family);
  const node = nodeAddresses(situation, family)[0];
  return [
    pathFromPod(situation, view, ip, { to: outside }),
    ...(neighbour === undefined ? [] : [pathFromPod(situation, view, ip, { to: neighbour })]),
    pathToPod(situation, view, ip, outside),
    ...(node === undefined ? [] : [pathToPod(situation, view, ip, { kind: 'node' as const, ip: node })]),
  ];
}

function otherPod({ pods }: Situation, view: PodView, family: 4 | 6): End | undefined {
  for (const pod of pods) {
    const ip = pod.ips.find((each) => familyOf(each) === family);
    if (ip !== undefined && pod.pod.key !== view.pod.key && pod.veth !== undefined) return { kind: 'pod', ip, pod };
  }
  return undefined;
}

/** Explains what the node does with packets from an ENI's own address. */
function explainEni(situation: Situation, eni: EniView, word: string, { to, from }: Ends): Explanation {
  if (from !== undefined) {
    throw new CliError(
      'USAGE',
      '--from is for Pods; of an ENI the packets that it sends are walked',
      'leave out --from',
    );
  }
  const sources = isAddress(word) ? [word] : eni.addresses;
  if (isAddress(word)) oneFamily([word, to]);
  const wanted = sources.filter((src) => to === undefined || familyOf(to) === familyOf(src));
  if (wanted.length === 0) {
    const message = `${eni.title} has no address to explain${to === undefined ? '' : ` of the family of ${to}`}`;
    throw new CliError('NOT_FOUND', message, `its addresses: ${sources.join(', ') || 'none are known'}`);
  }
  const paths = wanted.map((src): Path => {
    const family = familyOf(src);
    const end = endOf(situation, to ?? OUTSIDE[family]);
    const leads = end.kind === 'outside' ? leadsFromPrimary(eni, src) : undefined;
    const { hops } = findRouting(situation, { family, src, dst: end.ip, mark: 0 }, leads);
    return {
      direction: 'from-pod',
      from: `${src} (${eni.title})`,
      to: endText(end),
      hops: [...hops, eniHop(eni, family, undefined)],
    };
  });
  return {
    subject: `ENI ${eni.title}, table ${eni.table}`,
    element: eniId(eni.eniId ?? String(eni.table)),
    paths,
    findings: findingsOf(paths),
  };
}

/**
 * Explains what the node does with packets to an address that none of its Pods has: its own packets, and those from
 * outside.
 */
function explainAddress(situation: Situation, ip: string, { from, to }: Ends): Explanation {
  if (to !== undefined) {
    const next = `tke-eni explain <pod> --to ${to}; or tke-eni explain ${ip} without --to`;
    throw new CliError('USAGE', `no Pod of this node has ${ip}, so none sends from it`, next);
  }
  oneFamily([ip, from]);
  const service = findService(situation.facts, ip);
  if (service?.isKubeProxy === true) return explainService(situation, service);
  const family = familyOf(ip);
  const isNodes = nodeAddresses(situation, family).includes(ip);
  const source = endOf(situation, from ?? OUTSIDE[family]);
  const { links } = situation.facts.host;
  const iif =
    source.kind === 'pod' ? source.pod.veth?.ifindex : situation.enis.find(({ link }) => link !== undefined)?.ifindex;
  const outgoing = findRouting(situation, { family, dst: ip, mark: 0 }, undefined).hops;
  const passing =
    iif === undefined
      ? undefined
      : findRouting(
          situation,
          { family, dst: ip, src: source.ip, iif, mark: 0 },
          undefined,
          'the node takes no such packet',
        ).hops;
  const by = links.find(({ ifindex }) => ifindex === iif)?.ifname;
  const paths: readonly Path[] = [
    { direction: 'to-pod', from: 'this node', to: ip, hops: outgoing.map((hop) => staleHop(situation, hop, ip)) },
    ...(passing === undefined
      ? []
      : [
          {
            direction: 'to-pod' as const,
            from: `${endText(source)} by ${by}`,
            to: ip,
            hops: passing.map((hop) => staleHop(situation, hop, ip)),
          },
        ]),
  ];
  const what = isNodes ? `${ip}, an address of this node` : `${ip}, which no Pod of this node has`;
  return { subject: what, element: `address:${ip}`, paths, findings: findingsOf(paths) };
}

/** Explains where the node's own packets to a Service go: to a backend. */
function explainService(situation: Situation, service: Service): Explanation {
  const [backend] = service.backends;
  const pod = backend === undefined ? undefined : podOfIp(situation, backend);
  const rest =
    backend === undefined
      ? []
      : pod === undefined
        ? findRouting(situation, { family: familyOf(backend), dst: backend, mark: 0 }, undefined).hops
        : pathToPod(situation, pod, backend, { kind: 'node', ip: 'this node' }).hops;
  const hops = [serviceHop(service, 'the node', backend), ...rest];
  const paths: readonly Path[] = [{ direction: 'to-pod', from: 'this node', to: `${service.ip} (Service)`, hops }];
  const element = `service:${service.ip}`;
  return { subject: `${service.ip}, a Service`, element, paths, findings: findingsOf(paths) };
}

/**
 * Marks a hop as broken when its route is a stale host route of tke-eni: it matches packets that belong to another
 * node.
 */
function staleHop({ facts }: Situation, hop: Hop, ip: string): Hop {
  const stale = facts.host.routes.find(
    ({ protocol, dst, table }) =>
      protocol === RTPROT_TKE_ENI && (dst === `${ip}/32` || dst === `${ip}/128`) && routeId(table, dst) === hop.element,
  );
  if (stale === undefined) return hop;
  const found = finding('route-stale', {
    what: `a host route for ${ip} is in table ${stale.table}, and no Pod of this node has the address`,
    fix: ['tke-eni repair', `ip route del ${ip} table ${stale.table}`],
    subjects: [hop.element],
    severity: 'error',
  });
  return hopOf(hop, gravest(found, hop.finding));
}

/**
 * Returns each finding once, with its highest severity on any path, the most severe first; equal ones in the order of
 * the path.
 */
function findingsOf(paths: readonly Path[], others: readonly Finding[] = []): readonly Finding[] {
  const found = paths.flatMap(({ hops }) => hops.flatMap((hop) => (hop.finding === undefined ? [] : [hop.finding])));
  return [...uniqueFindings([...found, ...others])].sort(byGravity);
}
