import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../kube/resource-types.ts';
import { POD_NAMESPACE } from './cluster.ts';
import type { SeenNec, System } from './system.ts';

/** Lines of ipamd's log about the claim or its address. */
const LINES = 60;

/** Tells all that the store and the logs have of a claim whose Pod waits: itself, its Pod, its addresses on every node, calls. */
export function explainClaim(system: System, name: string): string {
  const { server } = system.cluster;
  const isIt = ({ metadata }: KubeObject): boolean =>
    metadata.name === name && (metadata.namespace ?? POD_NAMESPACE) === POD_NAMESPACE;
  const claim = server.objects(VPC_IP_CLAIMS.plural, VPC_IP_CLAIMS.group).find(isIt);
  const vips = server
    .objects(VPC_IPS.plural, VPC_IPS.group)
    .filter((vip) => JSON.stringify(vip['spec'] ?? {}).includes(`"${name}"`));
  const ips = vips.map(({ metadata }) => metadata.name);
  const necs: readonly SeenNec[] = server.objects(NODE_ENI_CONFIGS.plural, NODE_ENI_CONFIGS.group);
  const about = [name, ...ips];
  const said = system.ipamds.flatMap((ipamd) =>
    ipamd
      .logs()
      .split('\n')
      .filter((line) => about.some((word) => line.includes(`${word}"`) || line.includes(`${word} `)))
      .slice(-LINES),
  );
  return [
    `== claim ${JSON.stringify(claim?.['spec'])} ${JSON.stringify(claim?.['status'])} ${JSON.stringify(claim?.metadata)}`,
    ...vips.map(
      (vip) => `== VpcIP ${vip.metadata.name} ${JSON.stringify(vip['spec'])} ${JSON.stringify(vip['status'])}`,
    ),
    `== Pod ${JSON.stringify(server.objects(PODS.plural).find(isIt))}`,
    ...necs.map((nec) => explainNec(nec, name, ips)),
    `== ipamd of it\n${said.join('\n')}`,
  ].join('\n');
}

function explainNec({ metadata, spec, status }: SeenNec, name: string, ips: readonly string[]): string {
  const enis = (status?.eniInfos ?? []).map(({ eniID, state, addresses = [] }) => {
    const own = addresses.filter(({ ip, claim }) => ips.includes(ip) || claim?.name === name);
    const kept = addresses.filter(({ claim }) => claim !== undefined).length;
    return `${eniID} ${state} ${addresses.length} addresses, ${kept} kept; ${JSON.stringify(own)}`;
  });
  const offered = (spec?.releasableIPs ?? []).filter(({ ip }) => ips.includes(ip));
  const { eniInfos: _enis, intents = [], ...rest } = status ?? {};
  return [
    `== nec ${metadata.name} wants ${spec?.desiredRouteENIIP}, offers ${spec?.releasableIPs?.length ?? 0}, of it ${JSON.stringify(offered)}`,
    ...enis,
    `intents ${JSON.stringify(intents)}`,
    JSON.stringify(rest),
  ].join('\n');
}
