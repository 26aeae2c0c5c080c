import test, { type ExecutionContext } from 'ava';
import { at } from '../../kube-api/contract/contract-case.ts';
import { awaitPods, podManifest, type SeenPod } from '../pods.ts';
import { CONTROL_PLANE, type RealCluster } from '../real-cluster.ts';
import { type Asker, ask, ECHO_PORT, ECHO_SERVER, isSilent, netnsAsker, podAsker } from './echo.ts';
import { forgetWays, refusals, waysOf } from './ways.ts';

/** What the tests of Services ask: a backend on the first node, and clients everywhere. */
export type ServiceScene = {
  readonly backend: SeenPod;
  readonly podHere: Asker & { readonly ip: string };
  readonly podThere: Asker & { readonly ip: string };
  readonly here: Asker & { readonly ip: string };
  readonly there: Asker & { readonly ip: string };
  readonly outside: Asker & { readonly ip: string };
  /** A host of the VPC that is no node: it has neither Pods nor kube-proxy. */
  readonly inside: Asker & { readonly ip: string };
  readonly clusterIp: string;
  readonly anywherePort: number;
  readonly localPort: number;
  /** Of a Service of policy Local with backends on both nodes. */
  readonly everywherePort: number;
};

/** Label of the Pods behind the Service with backends on both nodes: the two clients serve too. */
const EVERYWHERE = { serves: 'everywhere' } as const;
/** Connections from one place to one node: with a backend on each of two nodes, a wrong choice shows in half of them. */
const CONNECTIONS = 10;

/** Makes one backend on the first node, a client on each, three Services before the backend and one before all three. */
export async function makeServiceScene(cluster: RealCluster): Promise<ServiceScene> {
  const { vpc } = cluster.cloud;
  const pinned = (nodeName: string, labels = {}) => ({
    ...ECHO_SERVER,
    labels,
    spec: { ...ECHO_SERVER.spec, nodeName },
  });
  await cluster.apply(
    [
      podManifest('backend', pinned('node1')),
      podManifest('client-here', pinned('node1', EVERYWHERE)),
      podManifest('client-there', pinned('node2', EVERYWHERE)),
      serviceManifest('plain', {}),
      serviceManifest('anywhere', { type: 'NodePort', externalTrafficPolicy: 'Cluster' }),
      serviceManifest('local', { type: 'NodePort', externalTrafficPolicy: 'Local' }),
      serviceManifest('everywhere', { type: 'NodePort', externalTrafficPolicy: 'Local', selector: EVERYWHERE }),
    ].join('\n---\n'),
  );
  const podOf = async (name: string): Promise<SeenPod> => {
    const [pod] = await awaitPods(cluster, `app=${name}`, 1);
    if (pod === undefined) throw new Error(`${name}: no Pod`);
    return pod;
  };
  const [backend, clientHere, clientThere] = [
    await podOf('backend'),
    await podOf('client-here'),
    await podOf('client-there'),
  ];
  const nodeAsker = (name: string) => ({ ...netnsAsker(name, cluster.node(name).ns), ip: cluster.node(name).ip });
  const { netns, primary } = vpc.node(CONTROL_PLANE);
  const portOf = async (name: string) =>
    Number(at(await cluster.kubectlJson('get', 'service', name), 'spec', 'ports', '0', 'nodePort'));
  return {
    backend,
    podHere: { ...podAsker(cluster, clientHere), ip: clientHere.ip },
    podThere: { ...podAsker(cluster, clientThere), ip: clientThere.ip },
    here: nodeAsker('node1'),
    there: nodeAsker('node2'),
    outside: { ...netnsAsker('outside', vpc.outside.netns), ip: vpc.outside.ip },
    inside: { ...netnsAsker('inside', netns), ip: primary.primaryIp },
    clusterIp: String(at(await cluster.kubectlJson('get', 'service', 'plain'), 'spec', 'clusterIP')),
    anywherePort: await portOf('anywhere'),
    localPort: await portOf('local'),
    everywherePort: await portOf('everywhere'),
  };
}

/** Declares what Services have to do, whatever way rules are laid out. */
export function declareServiceTests(mode: string, running: () => RealCluster, scene: () => ServiceScene): void {
  test.serial(
    `Service, ${mode}: its address leads from Pods and nodes to the backend, which sees who asks`,
    async (t) => {
      const { backend, clusterIp, podHere, podThere, here, there } = scene();
      for (const asker of [podHere, podThere, here, there])
        t.deepEqual(await ask(asker, clusterIp, 80), { client: asker.ip, pod: backend.name }, asker.name);
      // To itself by way of the Service: kube-proxy puts an address of the node in, or the answer would not come back.
      const itself = await ask(podAsker(running(), backend), clusterIp, 80);
      t.is(itself?.pod, backend.name, 'a Pod to itself');
    },
  );

  test.serial(`NodePort, ${mode}, policy Cluster: leads from everywhere by every node to the backend`, async (t) => {
    const { backend, anywherePort, outside, inside, podHere, podThere, here, there } = scene();
    for (const target of [here, there])
      for (const asker of [outside, inside, podHere, podThere, here, there])
        t.is((await ask(asker, target.ip, anywherePort))?.pod, backend.name, `${asker.name} to ${target.name}`);
  });

  test.serial(`NodePort, ${mode}, policy Cluster: the answer leaves by the node and NIC that was asked`, async (t) => {
    const { backend, anywherePort, outside, here, there } = scene();
    await expectWays(
      t,
      running(),
      () => ask(outside, here.ip, anywherePort),
      [outside.ip, backend.ip],
      [`outside -> node1/eth0: ${outside.ip} > ${here.ip}`, `node1/eth0 -> outside: ${here.ip} > ${outside.ip}`],
    );
    const eni = running().cloud.vpc.eniOf(backend.ip) ?? 'none';
    await expectWays(
      t,
      running(),
      () => ask(outside, there.ip, anywherePort),
      [outside.ip, backend.ip],
      [
        `outside -> node2/eth0: ${outside.ip} > ${there.ip}`,
        `node2/eth0 -> ${eni}: ${there.ip} > ${backend.ip}`,
        `${eni} -> node2/eth0: ${backend.ip} > ${there.ip}`,
        `node2/eth0 -> outside: ${there.ip} > ${outside.ip}`,
      ],
    );
  });

  test.serial(
    `NodePort, ${mode}, policy Local: the backend sees the client; nodes without one do not answer`,
    async (t) => {
      const { backend, localPort, outside, inside, here, there, podThere } = scene();
      for (const asker of [outside, inside, there, podThere])
        t.deepEqual(await ask(asker, here.ip, localPort), { client: asker.ip, pod: backend.name }, asker.name);
      for (const asker of [outside, inside])
        t.true(await isSilent(asker, there.ip, localPort), `a node without a backend answers ${asker.name}`);
      await expectWays(
        t,
        running(),
        () => ask(outside, here.ip, localPort),
        [outside.ip, backend.ip],
        [`outside -> node1/eth0: ${outside.ip} > ${here.ip}`, `node1/eth0 -> outside: ${here.ip} > ${outside.ip}`],
      );
    },
  );

  test.serial(
    `NodePort, ${mode}, policy Local, backends on both nodes: each connection from inside and outside the VPC ends on its node`,
    async (t) => {
      const { everywherePort, outside, inside, here, there, podHere, podThere } = scene();
      const ways = [
        ...[outside, inside, there, podThere].map((asker) => ({ asker, target: here, pod: 'client-here' })),
        ...[outside, inside, here, podHere].map((asker) => ({ asker, target: there, pod: 'client-there' })),
      ];
      const counts = await Promise.all(
        ways.map(({ asker, target, pod }) => countAnswers(asker, target.ip, everywherePort, pod)),
      );
      t.deepEqual(
        counts,
        ways.map(({ asker, target }) => `${asker.name} to ${target.ip}: ${CONNECTIONS} of ${CONNECTIONS}`),
      );
    },
  );
}

/** Counts answers to single connections by what is right about them: that of a Pod of the node, which sees who asks. */
async function countAnswers(
  asker: Asker & { readonly ip: string },
  ip: string,
  port: number,
  pod: string,
): Promise<string> {
  let right = 0;
  for (let asked = 0; asked < CONNECTIONS; asked++) {
    const answer = await ask(asker, ip, port, 1);
    right += answer?.pod === pod && answer.client === asker.ip ? 1 : 0;
  }
  return `${asker.name} to ${ip}: ${right} of ${CONNECTIONS}`;
}

/** Asks once more and compares the ways of TCP packets of these addresses through the VPC; none may be refused. */
async function expectWays(
  t: ExecutionContext,
  cluster: RealCluster,
  asked: () => Promise<unknown>,
  addresses: readonly string[],
  expected: readonly string[],
): Promise<void> {
  await forgetWays(cluster.cloud.vpc);
  t.truthy(await asked());
  t.deepEqual(await waysOf(cluster.cloud.vpc, addresses), [...expected].sort());
  t.deepEqual(await refusals(cluster.cloud.vpc), []);
}

function serviceManifest(name: string, more: object): string {
  const spec = { selector: { app: 'backend' }, ports: [{ port: 80, targetPort: ECHO_PORT }], ...more };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec });
}
