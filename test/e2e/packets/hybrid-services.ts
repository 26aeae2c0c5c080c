import type { ExecutionContext } from 'ava';
import type { LocalDetector, ProxiedService } from '../../support/kube-proxy/service-rules.ts';
import { askWho, countAnswers } from './ask.ts';
import { gatewayOf, type HybridWorld, type Party, WHO_PORT } from './hybrid-world.ts';

/** The node whose kube-proxy is asked. */
export const PROXY_NODE = 'n1';

const PORT = 80;
const FIRST_NODE_PORT = 30_000;

/** One question by the address of a Service. */
type Question = { readonly from: Party; readonly backend: Party; readonly service: ProxiedService; readonly by: Way };
type Way = 'ClusterIP' | 'NodePort';

/** Questions at a time. */
const AT_ONCE = 8;

/** Services before every Pod, one of each protocol and policy, as the node's kube-proxy has them. */
export function hybridServices({ parties }: HybridWorld): readonly ProxiedService[] {
  const variants = parties
    .filter(isPod)
    .flatMap(({ name, ip, node }) =>
      (['tcp', 'udp'] as const).flatMap((protocol) =>
        (['Cluster', 'Local'] as const).map((policy) => ({ name, ip, protocol, policy, isLocal: node === PROXY_NODE })),
      ),
    );
  return variants.map(({ name, ip, protocol, policy, isLocal }, at) => ({
    ...{ name: `default/${name}.${protocol}.${policy.toLowerCase()}`, clusterIp: `10.96.0.${at + 1}`, port: PORT },
    ...{ protocol, policy, nodePort: FIRST_NODE_PORT + at, endpoints: [{ ip, port: WHO_PORT, isLocal }] },
  }));
}

/** Asks all of them, from every Pod of the node, the node, another node with a Pod of each kind, and the outside. */
export async function expectServices(
  t: ExecutionContext,
  world: HybridWorld,
  services: readonly ProxiedService[],
  detector?: LocalDetector,
): Promise<number> {
  const questions = questionsOf(world, services);
  const waiting = [...questions.entries()];
  const answers: string[] = [];
  const run = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [at, { from, service, by }] = next;
      const { clusterIp, nodePort = 0, protocol } = service;
      const [host, port] = by === 'ClusterIP' ? [clusterIp, PORT] : [world.party(PROXY_NODE).ip, nodePort];
      answers[at] = await askWho(from.netns, protocol, host, port);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  const wrong = questions.flatMap((question, at) => {
    const wanted = `${question.backend.name} ${seenBy(world, question, detector)}`;
    return answers[at] === wanted ? [] : [`${lineOf(question, answers[at] ?? '')}, not ${wanted}`];
  });
  t.deepEqual(wrong, []);
  t.deepEqual(await world.vpc.droppedPackets(), []);
  return questions.length;
}

/** A packet by a Service's address arrives once: from every Pod of the node at every Pod of it, itself included. */
export async function expectNoDuplicates(
  t: ExecutionContext,
  world: HybridWorld,
  services: readonly ProxiedService[],
): Promise<void> {
  const ofNode = world.parties.filter((one) => isPod(one) && one.node === PROXY_NODE);
  const asked = services.filter(
    ({ protocol, policy, endpoints }) => protocol === 'udp' && policy === 'Cluster' && endpoints[0]?.isLocal === true,
  );
  const counts = await Promise.all(
    ofNode.flatMap(({ name, netns }) =>
      asked.map(async (service) => `${name} to ${service.name}: ${await countAnswers(netns, service.clusterIp, PORT)}`),
    ),
  );
  t.deepEqual(
    counts.filter((line) => !line.endsWith(': 1')),
    [],
  );
  t.is(counts.length, ofNode.length * ofNode.length);
}

/** A Pod asks each Service of the node that it is on by both addresses; hosts elsewhere ask by NodePort. */
function questionsOf(world: HybridWorld, services: readonly ProxiedService[]): readonly Question[] {
  return services.flatMap((service) => {
    const backend = world.parties.find(({ ip }) => ip === service.endpoints[0]?.ip);
    if (backend === undefined) throw new Error(`${service.name}: nobody has the address of its endpoint`);
    const isAnswered = service.policy === 'Cluster' || backend.node === PROXY_NODE;
    return world.parties.flatMap((from): readonly Question[] => [
      ...(from.node === PROXY_NODE && service.policy === 'Cluster'
        ? [{ from, backend, service, by: 'ClusterIP' as const }]
        : []),
      // The node itself asks its own NodePort with an address of its own, whatever the policy.
      ...(isAnswered && from.name !== PROXY_NODE && from !== backend
        ? [{ from, backend, service, by: 'NodePort' as const }]
        : []),
    ]);
  });
}

/** The source that the Pod behind a Service sees. @see docs/hybrid.md */
function seenBy(
  world: HybridWorld,
  { from, backend, service, by }: Question,
  detector: LocalDetector | undefined,
): string {
  const node = world.node(PROXY_NODE);
  const own = world.party(PROXY_NODE).ip;
  const isHere = backend.node === PROXY_NODE;
  const isOfNode = from.node === PROXY_NODE;
  // An address of the interface by which the packet leaves the node: for the Pod, or for the VPC by the asker's ENI.
  const ofLink = isHere && backend.kind === 'bridge' ? gatewayOf(node) : own;
  const masqueraded = !isHere && isOfNode && from.kind === 'eni' ? (node.enis[0]?.addresses[0]?.ip ?? '') : ofLink;
  const isTranslated = by === 'NodePort' ? service.policy === 'Cluster' : !isDetected(from, detector);
  if (isTranslated || from === backend) return masqueraded;
  // A Pod with an exclusive ENI answers by that ENI what came from elsewhere, past the node that has to translate the answer back.
  const answersPast = isHere && backend.kind === 'exclusive' && (from.kind === 'exclusive' || !isOfNode);
  const isSentByNode = !isHere && isOfNode && from.kind === 'exclusive';
  return answersPast || isSentByNode ? own : from.ip;
}

/** Whether kube-proxy takes an asker on its node for a Pod; without a detector all are. What asks from the bridge comes in by it. */
function isDetected({ ip, kind }: Party, detector: LocalDetector | undefined): boolean {
  if (detector === undefined) return true;
  if ('interfacePrefix' in detector) return kind === 'eni' || kind === 'routed' || kind === 'exclusive';
  return ip.startsWith('172.31.');
}

function isPod({ kind }: Party): boolean {
  return kind !== 'node' && kind !== 'outside';
}

function lineOf({ from, backend, service, by }: Question, answer: string): string {
  const { policy, protocol } = service;
  return `${from.kind} ${from.name} by ${by} to ${backend.kind} ${backend.name}, ${policy}, ${protocol}: ${answer}`;
}
