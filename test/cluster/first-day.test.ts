import test from 'ava';
import { at } from '../kube-api/contract/contract-case.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { loadImages, tellOurPods } from './deploy.ts';
import { pageBlocks } from './doc-commands.ts';
import { PageUser, readPage } from './page-user.ts';
import { podsOf } from './pods.ts';
import { CONTROL_PLANE, startRealCluster } from './real-cluster.ts';
import { BUSYBOX_IMAGE } from './small-images.ts';
import { ask, isSilent, netnsAsker } from './workloads/echo.ts';

// docs/first-day.md as it is printed: its files are written, its commands run, in order, and what it shows has the same
// columns here. What the page tells people to do by hand is done between its commands.

const STEP_MS = 600_000;
const PAGE = pageBlocks(readPage('first-day.md'));
const NODES = ['node1', 'node2'];

let user: PageUser | undefined;

const running = clusterOfFile(
  // Of eight cores: places for exclusive ENIs beside the shared ones.
  () => startRealCluster({ nodes: NODES.map((name) => ({ name, cores: 8 })) }),
  async (cluster) => {
    user = new PageUser(cluster);
    // `make image`, and the nodes have them.
    await loadImages(cluster.nodes);
  },
);

for (const section of new Set(PAGE.map(({ heading }) => heading)))
  test.serial(`docs/first-day.md: ${section}`, async (t) => {
    t.timeout(STEP_MS);
    let answer = '';
    for (const { info, lines } of PAGE.filter(({ heading }) => heading === section)) {
      if (info === 'yaml') writeFile(lines);
      else if (info === 'sh on a node')
        answer = await running()
          .node('node1')
          .exec(['sh', '-ec', lines.join('\n')]);
      else if (info === '') {
        t.log(answer);
        t.deepEqual(columnsOf(answer), columnsOf(lines.join('\n')), 'what the page shows');
      } else {
        if (info === 'sh after a reboot') await reboot('node1');
        answer = await runCommands(lines);
      }
    }
    t.pass();
  });

test.serial(
  'docs/first-day.md: Pods answer from inside and outside the VPC, by their address, node and port',
  async (t) => {
    const cluster = running();
    const { vpc } = cluster.cloud;
    const askers = [
      { ...netnsAsker('outside', vpc.outside.netns), ip: vpc.outside.ip },
      { ...netnsAsker('inside', cluster.controlPlane.netns), ip: vpc.node(CONTROL_PLANE).primary.primaryIp },
    ];
    const pods = await podsOf(cluster, 'app=web');
    for (const asker of askers) {
      for (const pod of pods)
        t.deepEqual(
          await ask(asker, pod.ip, 8_080),
          { client: asker.ip, pod: pod.name },
          `${asker.name} to ${pod.ip} on ${pod.node}\n${await tellOurPods(cluster)}`,
        );
      for (const node of cluster.nodes) {
        t.truthy(await ask(asker, node.ip, 30_080), `${asker.name} by ${node.name}`);
        const local = await ask(asker, node.ip, 30_081);
        t.is(local?.client, asker.ip);
        t.is(pods.find(({ name }) => name === local?.pod)?.node, node.name);
      }
    }
    const [ported] = (await podsOf(cluster, 'app=ported')).filter(({ phase }) => phase === 'Running');
    for (const node of cluster.nodes) {
      const answer = await askers[0]?.run(['busybox', 'timeout', '3', 'wget', '-qO-', `http://${node.ip}:18080/`]);
      t.is(/404/.test(`${answer?.stdout}${answer?.stderr}`), node.name === ported?.node, node.name);
      t.true(await isSilent(netnsAsker('outside', vpc.outside.netns), node.ip, 18_081));
    }
  },
);

test.serial('docs/first-day.md: cloud, objects and kernels agree at the end', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
});

/** Reboots a node, and waits until its kubelet has reported each of its Pods again: before, the API server has what was. */
async function reboot(name: string): Promise<void> {
  const cluster = running();
  const since = Date.now();
  await cluster.node(name).reboot();
  let stale: readonly string[] = [];
  await waitUntil(
    async () => {
      const list = await cluster.kubectlJson('get', 'pods', '-A', '--field-selector', `spec.nodeName=${name}`);
      const pods = at(list, 'items');
      stale = (Array.isArray(pods) ? pods : [])
        .filter((pod) => isOlder(pod, since))
        .map((pod) => String(at(pod, 'metadata', 'name')));
      return stale.length === 0;
    },
    {
      what: `Pods of ${name} after its reboot`,
      timeoutMs: 180_000,
      everyMs: 500,
      explain: () => `${stale.join(' ')}\n${cluster.node(name).logs()}`,
    },
  );
}

/** True for a Pod that is said to run in a container of before. */
function isOlder(pod: unknown, sinceMs: number): boolean {
  const started = at(pod, 'status', 'containerStatuses', 0, 'state', 'running', 'startedAt');
  // The API server keeps whole seconds.
  return at(pod, 'status', 'phase') === 'Running' && !(Date.parse(String(started)) + 1_000 > sinceMs);
}

function writeFile(lines: readonly string[]): void {
  const [, name] = /^# (\S+)$/.exec(lines[0] ?? '') ?? [];
  if (name === undefined) throw new Error(`a file without a name in its first line: ${lines.join('\n')}`);
  const text = lines
    .join('\n')
    .replaceAll(/^( +)image: busybox$/gm, `$1image: ${BUSYBOX_IMAGE}\n$1imagePullPolicy: Never`);
  user?.write(name, text);
}

async function runCommands(lines: readonly string[]): Promise<string> {
  const [node = '', other = ''] = NODES;
  const pod = (await podsOf(running(), 'app=web').catch(() => [])).find((one) => one.node === node)?.name ?? '';
  // One shell for all lines up to the one after which a person edits a file.
  const script = lines
    .filter((line) => line !== 'make image')
    .map((line) =>
      line
        .replaceAll('OTHER-NODE', other)
        .replaceAll(/\bNODE\b/g, node)
        .replace('NAMESPACE/POD', `default/${pod}`),
    );
  const edit = script.findIndex((line) => line.startsWith('cp -r conf/'));
  const parts = edit < 0 ? [script] : [script.slice(0, edit + 1), script.slice(edit + 1)];
  let answer = '';
  for (const [index, part] of parts.entries()) {
    if (index > 0) user?.fillOverlay();
    answer =
      (await user?.sh(part.join('\n')).catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await tellOurPods(running())}`);
      })) ?? '';
  }
  return answer;
}

/** The headings of the last table in an answer: words in capitals. */
function columnsOf(answer: string): readonly string[] {
  const heads = answer.split('\n').filter((line) => /^NAME(SPACE)? /.test(line));
  return heads.flatMap((line) => line.trim().split(/\s{2,}/));
}
