import { familyOfMessage } from '../../dataplane/address-family.ts';
import { anyPrefix, canonicalAddress, familyOf, hostPrefix, isAddress } from '../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import { toRoute } from '../../dataplane/to-state.ts';
import { UserError } from '../../runtime/user-error.ts';
import { eniId, podId, routeId } from '../catalogue/element-id.ts';
import { bySeverity, type Finding, uniqueFindings } from '../catalogue/finding.ts';
import { linkName, type ModelEni, type ModelPod, nodeAddresses, podOfIp } from '../model/node-model.ts';
import { findPod } from '../node/find-pod.ts';
import { type End, endOf, endText, pathFromPod, pathToPod, targetOf } from './build-paths.ts';
import { evaluateRouting } from './evaluate-routing.ts';
import { expectedRouteFromPrimary } from './expected-route.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Explanation, Hop, Path } from './explanation.ts';
import { findService, type Service } from './find-service.ts';
import { hopOf, mostSevere } from './hop.ts';
import { eniHop } from './link-hops.ts';
import { ownEniText } from './own-eni-hop.ts';
import { looksLikeAddress, parsePacketAddress } from './parse-packet-address.ts';
import { serviceHop } from './service-hop.ts';

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
 * @throws UserError USAGE, NOT_FOUND
 */
export function buildExplanation(context: ExplainContext, question: ExplainQuestion): Explanation {
  const { subject: word } = question;
  const to = question.to === undefined ? undefined : parsePacketAddress('--to', question.to);
  const from = question.from === undefined ? undefined : parsePacketAddress('--from', question.from);
  const ends = { to, from };
  // An IPv6 address can be written in several ways.
  const name = canonicalAddress(word);
  const eni = context.enis.find(({ eniId: id, ifname, addresses }) => [id, ifname, ...addresses].includes(name));
  if (eni !== undefined) return explainEni(context, eni, name, ends);
  if (isAddress(word) && context.pods.every(({ ips }) => !ips.includes(name))) {
    return explainAddress(context, parsePacketAddress('', word), ends);
  }
  const view = viewOf(context, name);
  return explainPod(context, view, isAddress(word) ? name : undefined, ends);
}

function viewOf(context: ExplainContext, name: string): ModelPod {
  try {
    return findPod(context.pods, context.facts.agent, name);
  } catch (error) {
    if (looksLikeAddress(name)) parsePacketAddress('', name);
    throw error;
  }
}

type Ends = { readonly to: string | undefined; readonly from: string | undefined };

/**
 * Requires that all named addresses are of one family, so that none of them is ignored silently.
 * @throws UserError USAGE
 */
function oneFamily(named: readonly (string | undefined)[]): void {
  const addresses = named.filter((ip) => ip !== undefined);
  if (new Set(addresses.map(familyOf)).size < 2) return;
  throw new UserError('USAGE', `${addresses.join(' and ')} are not of one family`, 'name addresses of one family');
}

/** @param namedIp the address that names the Pod; undefined: all addresses of the Pod are explained */
function explainPod(context: ExplainContext, view: ModelPod, namedIp: string | undefined, ends: Ends): Explanation {
  const network = networkText(view);
  const other = [ends.to, ends.from].find((ip) => ip !== undefined);
  const named = [namedIp, ends.to, ends.from].filter((ip) => ip !== undefined);
  oneFamily(named);
  const ips = view.ips.filter((ip) => named.every((each) => familyOf(each) === familyOf(ip)));
  if (ips.length === 0) {
    const message = `${view.title} has no address to explain${other === undefined ? '' : ` of the family of ${other}`}`;
    throw new UserError('NOT_FOUND', message, `its addresses: ${view.ips.join(', ') || 'none'}`);
  }
  const paths = ips.flatMap((ip) => pathsOfPod(context, view, ip, ends));
  return {
    subject: `Pod ${view.title}, ${view.ifName}, ${view.ips.join(' and ')} ${network}`,
    element: podId(view.pod.key),
    paths,
    findings: findingsOf(paths, tableCollisions(context, view)),
  };
}

/** Says by which network the Pod is connected. */
function networkText(view: ModelPod): string {
  const { gr, eni } = view;
  if (gr !== undefined) {
    const former = gr.isFormer ? ', a former podCIDR' : ' of this node';
    return `of podCIDR ${gr.cidr}${former}, ${gr.wiring === 'bridge' ? 'on the bridge' : 'routed'}`;
  }
  return `on ${view.hasOwnEni ? ownEniText(view) : (eni?.title ?? 'an unknown ENI')}`;
}

/**
 * Finds routes of other programs in the table of the Pod's ENI. They match some packets, even if not those explained
 * here.
 */
function tableCollisions({ facts, assessment }: ExplainContext, { eni }: ModelPod): readonly Finding[] {
  return facts.host.routes
    .filter(({ table, protocol }) => table === eni?.table && protocol !== RTPROT_TKE_ENI)
    .flatMap((route) => {
      const element = routeId(route.table, route.dst ?? anyPrefix(familyOfMessage(route)));
      const found = assessment.about(element, ['table-collision', 'blackhole-route', 'foreign-route']);
      return found === undefined ? [] : [{ ...found, severity: 'warning' as const }];
    });
}

function pathsOfPod(context: ExplainContext, view: ModelPod, ip: string, { to, from }: Ends): readonly Path[] {
  // With both options the Pod sends, and `--from` is the source address that it uses.
  if (to !== undefined && from !== undefined) return [pathFromPod(context, view, from, targetOf(context, view, to))];
  const other = to ?? from;
  if (other !== undefined) {
    const target = targetOf(context, view, other);
    const there = pathFromPod(context, view, ip, target);
    // A packet from a Pod to itself needs no way back. The host that answers for a Service without a backend is not
    // known.
    if (view.ips.includes(other) || (target.service?.isKubeProxy === true && !target.service.isWalked)) return [there];
    const back = pathToPod(context, view, ip, target.to);
    return to === undefined ? [back, there] : [there, back];
  }
  const family = familyOf(ip);
  const outside = endOf(context, OUTSIDE[family]);
  const neighbour = otherPod(context, view, family);
  const node = nodeAddresses(context, family)[0];
  return [
    pathFromPod(context, view, ip, { to: outside }),
    ...(neighbour === undefined ? [] : [pathFromPod(context, view, ip, { to: neighbour })]),
    pathToPod(context, view, ip, outside),
    ...(node === undefined ? [] : [pathToPod(context, view, ip, { kind: 'node' as const, ip: node })]),
  ];
}

function otherPod({ pods }: ExplainContext, view: ModelPod, family: 4 | 6): End | undefined {
  for (const pod of pods) {
    const ip = pod.ips.find((each) => familyOf(each) === family);
    if (ip !== undefined && pod.pod.key !== view.pod.key && pod.veth !== undefined) return { kind: 'pod', ip, pod };
  }
  return undefined;
}

/** Explains what the node does with packets from an ENI's own address. */
function explainEni(context: ExplainContext, eni: ModelEni, name: string, { to, from }: Ends): Explanation {
  if (from !== undefined) {
    throw new UserError(
      'USAGE',
      '--from is for Pods; of an ENI the packets that it sends are walked',
      'leave out --from',
    );
  }
  const sources = isAddress(name) ? [name] : eni.addresses;
  if (isAddress(name)) oneFamily([name, to]);
  const selected = sources.filter((src) => to === undefined || familyOf(to) === familyOf(src));
  if (selected.length === 0) {
    const message = `${eni.title} has no address to explain${to === undefined ? '' : ` of the family of ${to}`}`;
    throw new UserError('NOT_FOUND', message, `its addresses: ${sources.join(', ') || 'none are known'}`);
  }
  const paths = selected.map((src): Path => {
    const family = familyOf(src);
    const end = endOf(context, to ?? OUTSIDE[family]);
    const expected = end.kind === 'outside' ? expectedRouteFromPrimary(eni, src) : undefined;
    const { hops } = evaluateRouting(context, { family, src, dst: end.ip, mark: 0 }, expected);
    return {
      direction: 'from-pod',
      from: `${src} (${eni.title})`,
      to: endText(end),
      hops: [...hops, eniHop(context, eni, family, undefined)],
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
function explainAddress(context: ExplainContext, ip: string, { from, to }: Ends): Explanation {
  if (to !== undefined) {
    const next = `tke-eni explain <pod> --to ${to}; or tke-eni explain ${ip} without --to`;
    throw new UserError('USAGE', `no Pod of this node has ${ip}, so none sends from it`, next);
  }
  oneFamily([ip, from]);
  const service = findService(context.facts, ip);
  if (service?.isKubeProxy === true) return explainService(context, service);
  const family = familyOf(ip);
  const isNodes = nodeAddresses(context, family).includes(ip);
  const source = endOf(context, from ?? OUTSIDE[family]);
  const { links } = context.facts.host;
  const iif =
    source.kind === 'pod' ? source.pod.veth?.ifindex : context.enis.find(({ link }) => link !== undefined)?.ifindex;
  const outgoing = evaluateRouting(context, { family, dst: ip, mark: 0 }, undefined).hops;
  const passing =
    iif === undefined
      ? undefined
      : evaluateRouting(
          context,
          { family, dst: ip, src: source.ip, iif, mark: 0 },
          undefined,
          'the node takes no such packet',
        ).hops;
  const ifname = links.find(({ ifindex }) => ifindex === iif)?.ifname;
  const paths: readonly Path[] = [
    { direction: 'to-pod', from: 'this node', to: ip, hops: outgoing.map((hop) => staleHop(context, hop, ip)) },
    ...(passing === undefined
      ? []
      : [
          {
            direction: 'to-pod' as const,
            from: `${endText(source)} by ${ifname}`,
            to: ip,
            hops: passing.map((hop) => staleHop(context, hop, ip)),
          },
        ]),
  ];
  const what = isNodes ? `${ip}, an address of this node` : `${ip}, which no Pod of this node has`;
  return { subject: what, element: `address:${ip}`, paths, findings: findingsOf(paths) };
}

/** Explains where the node's own packets to a Service go: to a backend. */
function explainService(context: ExplainContext, service: Service): Explanation {
  const [backend] = service.backends;
  const pod = backend === undefined ? undefined : podOfIp(context, backend);
  const rest =
    backend === undefined
      ? []
      : pod === undefined
        ? evaluateRouting(context, { family: familyOf(backend), dst: backend, mark: 0 }, undefined).hops
        : pathToPod(context, pod, backend, { kind: 'node', ip: 'this node' }).hops;
  const hops = [serviceHop(service, 'the node', backend), ...rest];
  const paths: readonly Path[] = [{ direction: 'to-pod', from: 'this node', to: `${service.ip} (Service)`, hops }];
  const element = `service:${service.ip}`;
  return { subject: `${service.ip}, a Service`, element, paths, findings: findingsOf(paths) };
}

/**
 * Marks a hop as broken when its route is a stale host route of tke-eni: it matches packets that belong to another
 * node.
 */
function staleHop({ facts, assessment }: ExplainContext, hop: Hop, ip: string): Hop {
  const stale = facts.host.routes.find(
    ({ protocol, dst, table }) =>
      protocol === RTPROT_TKE_ENI && dst === hostPrefix(ip) && routeId(table, dst) === hop.element,
  );
  if (stale === undefined) return hop;
  const route = toRoute(stale, (ifindex) => linkName(facts.host.links, ifindex));
  const stays = assessment.about(hop.element, ['route-stale']) ?? assessment.ofHost({ kind: 'delete-route', route });
  const found = stays && { ...stays, severity: 'error' as const };
  return hopOf(hop, mostSevere(found, hop.finding));
}

/**
 * Returns each finding once, with its highest severity on any path, the most severe first; equal ones in the order of
 * the path.
 */
function findingsOf(paths: readonly Path[], others: readonly Finding[] = []): readonly Finding[] {
  const found = paths.flatMap(({ hops }) => hops.flatMap((hop) => (hop.finding === undefined ? [] : [hop.finding])));
  return [...uniqueFindings([...found, ...others])].sort(bySeverity);
}
