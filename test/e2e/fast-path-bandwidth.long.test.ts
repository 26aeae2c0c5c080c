// Long: it waits until the links of Pods get their filters, and sends at a limited rate.
import test, { type ExecutionContext } from 'ava';
import type { NetnsView } from '../../sim/support/netns.ts';
import type { TrafficEnd } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Conflist, callChain } from './support/chain.ts';
import { ipsOf } from './support/cni-answers.ts';
import { programFilters } from './support/fast-filters.ts';
import { closeScene, openScene } from './support/scene.ts';
import type { SceneNode } from './support/scene-node.ts';

// The bandwidth plugin after ours, with the fast path: its limit holds, before and after the time at which links get filters.

/** Bits a second, and bits that may pass at once. */
const RATE = 8_000_000;
const BURST = 800_000;
/** Takes 3 s at that rate; without a limit, hundredths of a second. */
const BYTES = 3_000_000;
const LEAST_MS = 1_500;

/** Into the Pod, and out of it. */
const INTO = { ingressRate: RATE, ingressBurst: BURST };
const OUT = { egressRate: RATE, egressBurst: BURST };

/** A Pod with a limit, as the runtime makes it by the list. */
async function limitedPod(t: ExecutionContext, node: SceneNode, bandwidth: object) {
  const list: Conflist = {
    ...{ cniVersion: '1.0.0', name: 'tke-eni' },
    plugins: [
      // As the agent writes it.
      { ...node.conf({ filterPlace: true, capabilities: { bandwidth: true } }), type: 'tke-route-eni' },
      { type: 'bandwidth', capabilities: { bandwidth: true } },
    ],
  };
  const before = await node.hostVeths();
  const pod = await node.newPod();
  const added = await callChain('ADD', pod, list, { runtimeConfig: { bandwidth } });
  for (const { exitCode, stdout } of added) t.is(exitCode, 0, stdout);
  const result = added.at(-1)?.result ?? {};
  const [link = ''] = (await node.hostVeths()).filter((name) => !before.includes(name));
  const remove = async (): Promise<void> => {
    const removed = await callChain('DEL', pod, list, { runtimeConfig: { bandwidth }, prevResult: result });
    for (const { exitCode, stdout } of removed) t.is(exitCode, 0, stdout);
    await pod.netns.close();
  };
  return { netns: pod.netns, ip: ipsOf(result)[0] ?? '', link, remove };
}

test('the bandwidth plugin: its filters have the link to themselves, and its limits hold', async (t) => {
  t.timeout(300_000);
  const scene = await openScene({ ruleMode: 'compact', agentFlags: { 'fast-path': 'bpf' } });
  try {
    const { node, vpc } = scene;
    const { outside } = vpc;
    const both = await limitedPod(t, node, { ...INTO, ...OUT });
    // A queueing discipline alone, which is no filter: the fast path sends through it.
    const into = await limitedPod(t, node, INTO);
    const limits = async (when: string): Promise<void> => {
      await slow(t, `into the Pod, ${when}`, outside.netns, both);
      await slow(t, `out of the Pod, ${when}`, both.netns, outside);
      await slow(t, `into the other Pod, ${when}`, outside.netns, into);
    };
    await limits('at once');
    const devs = async () => (await programFilters(node.netns)).map(({ dev }) => dev);
    // Its turn comes after that of the first one.
    await waitUntil(async () => (await devs()).includes(into.link), {
      ...{ what: 'filters on the link that has none', everyMs: 100 },
      explain: () => node.agent.logs().slice(-2_000),
    });
    t.false((await devs()).includes(both.link));
    await limits('later');
    const fast = await send(into.netns, outside);
    t.log(`figure: without a limit ${fast.toFixed(0)} ms`);
    t.regex(
      node.agent.logs(),
      /links of Pods: a discipline ingress is not ours; the fast path leaves such a link alone/,
      node.agent.logs().slice(-2_000),
    );
    await both.remove();
    await into.remove();
  } finally {
    await closeScene(scene);
  }
});

async function slow(t: ExecutionContext, what: string, from: NetnsView, to: TrafficEnd): Promise<void> {
  const tookMs = await send(from, to);
  t.log(`figure: ${what}, ${BYTES} bytes in ${tookMs.toFixed(0)} ms`);
  t.true(tookMs > LEAST_MS, `${what}: ${tookMs} ms`);
}

/** Sends over TCP; returns how long it took until all was read, ms. */
async function send(from: NetnsView, to: TrafficEnd): Promise<number> {
  const { ip } = to;
  const server = to.netns.start([process.execPath, '-e', SERVER, ip]);
  try {
    await waitUntil(() => server.stdout.includes('listens'), { what: 'the server', explain: () => server.stderr });
    return Number(await from.run([process.execPath, '-e', CLIENT, ip, `${BYTES}`]));
  } finally {
    await server.stop('SIGKILL');
  }
}

const SERVER = `
  const server = require('node:net').createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('data', () => {});
    socket.on('end', () => socket.end());
  });
  server.listen(9000, process.argv[1], () => console.log('listens'));
`;

const CLIENT = `
  const [, ip, bytes] = process.argv;
  const startedMs = performance.now();
  const socket = require('node:net').createConnection({ host: ip, port: 9000 });
  socket.on('data', () => {});
  socket.on('close', () => console.log(performance.now() - startedMs));
  socket.end(Buffer.alloc(Number(bytes)));
`;
