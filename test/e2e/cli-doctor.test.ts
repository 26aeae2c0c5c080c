import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { FindingId } from '../../inspection/catalogue/catalogue.ts';
import type { JsonObject } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { longTest, partOf, shortTest } from '../support/suite-part.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type FaultScene, readFaultScene } from './support/fault-scene.ts';
import { placeOf } from './support/fault-trial.ts';
import { changesBetween, kernelImage } from './support/kernel-image.ts';
import type { NodeFault } from './support/node-fault.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// The doctor on a real node: silent while all is well, and each fault by its name, of ours and of others.

/** What is the test's machine's, not the trial's. */
const NOT_OF_THE_NODE = 'networkd,network-manager,cloud-init,inotify,state-dir-not-tmpfs,conntrack-pressure';

/** More than the agent goes along with within a minute. */
const ROUNDS = 7;
const SLOW_MS = 400;

/** The agent puts its executable and its configuration into folders of its own. */
const INSTALLS = {
  'plugin-dir': DIST_BIN_DIR,
  'reference-plugin-dir': '',
  'port-mapping': false,
  bandwidth: false,
};

let trial: Trial | undefined;
let pod: AttachedPod | undefined;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact', flags: INSTALLS });
  pod = await trial.addPod();
  await trial.addPod();
});

test.after.always(() => trial?.close());

function flagsOf({ agent }: Trial): readonly string[] {
  return ['--cni-conf-dir', agent.cniConfDir, '--cni-bin-dir', agent.cniBinDir, '--skip', NOT_OF_THE_NODE];
}

function theNode(): { readonly trial: Trial; readonly pod: AttachedPod } {
  if (trial === undefined || pod === undefined) throw new Error('there is no node');
  return { trial, pod };
}

shortTest.serial(
  'tke-eni doctor: says that nothing is wrong of a node whose agent runs, and changes nothing',
  async (t) => {
    const { trial, pod } = theNode();
    const views = [trial.node.netns, pod.netns];
    let before: readonly string[] = [];
    await waitUntil(
      async () => {
        before = await kernelImage(views);
        return !before.some((line) => / tentative /.test(line));
      },
      { what: 'addresses that are not tentative', everyMs: 100 },
    );
    const { code, stdout, stderr } = await runCli(placeOf(trial), 'doctor', ...flagsOf(trial));
    t.is(code, 0, stdout + stderr);
    t.regex(stdout, /^\d+ checks, nothing wrong/m);
    t.deepEqual(changesBetween(before, await kernelImage(views)), []);
  },
);

shortTest.serial('tke-eni doctor: tells somebody without rights what it could not look at', async (t) => {
  const { trial } = theNode();
  const { stateDir, socketPath } = placeOf(trial);
  const nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'];
  const places = ['--state-dir', stateDir, '--socket', socketPath, '--host-root', '/'];
  const argv = [...nobody, join(DIST_BIN_DIR, 'tke-eni'), 'doctor', ...places, '--only', 'agent,state-folder,iptables'];
  const { code, stdout, stderr } = await trial.node.netns.tryRun(argv);
  t.is(code, 2, stdout + stderr);
  t.regex(stdout, /^skipped {2}agent: .*; run as root$/m);
  t.regex(stdout, /^skipped {2}state-folder: .*; run as root$/m);
  t.regex(stdout, /^nothing could be looked at, 3 skipped$/m);
  t.regex(stderr, /without root/);
});

longTest.serial('tke-eni doctor: names a fight with a program that undoes repairs', async (t) => {
  t.timeout(60_000);
  const { trial } = theNode();
  const hasRule = async () => (await trial.node.netns.ipJson('rule', 'show', 'pref', '512')).length > 0;
  for (let round = 0; round < ROUNDS; round++) {
    await waitUntil(hasRule, { what: 'the rule', everyMs: 20 });
    // Slow enough that no repair has to wait.
    await sleep(SLOW_MS);
    await trial.node.netns.ip('rule', 'del', 'pref', '512');
  }
  await waitUntil(hasRule, { what: 'the rule', everyMs: 20 });
  t.deepEqual(await idsOf(trial), ['repair-fight']);
  await trial.killAgent();
  await trial.startAgent();
  t.deepEqual(await idsOf(trial), []);
});

longTest.serial('tke-eni doctor: names an agent that hangs, whose socket takes connections still', async (t) => {
  t.timeout(60_000);
  const { trial } = theNode();
  trial.agent.kill('SIGSTOP');
  try {
    t.deepEqual(await idsOf(trial), ['agent-dead']);
  } finally {
    trial.agent.kill('SIGCONT');
  }
  t.deepEqual(await idsOf(trial), []);
});

test.serial('tke-eni doctor: names an agent that is dead', async (t) => {
  const { trial } = theNode();
  await trial.killAgent();
  t.deepEqual(await idsOf(trial), ['agent-dead']);
});

type DoctorFault = Pick<NodeFault, 'name' | 'inject'> & {
  readonly undo: (scene: FaultScene) => Promise<unknown>;
  readonly finds: FindingId;
};

const onNode = ({ trial }: FaultScene, ...argv: readonly string[]): Promise<string> => trial.node.netns.run(argv);

/** What no plan of ours is about, so that only the doctor sees it. */
const DOCTOR_FAULTS: readonly DoctorFault[] = [
  {
    name: "a rule about bits of our mark, as Tailscale's",
    inject: (scene) =>
      onNode(scene, 'ip', 'rule', 'add', 'pref', '5210', 'fwmark', '0x80000/0xff0000', 'lookup', 'main'),
    undo: (scene) => onNode(scene, 'ip', 'rule', 'del', 'pref', '5210'),
    finds: 'mark-collision',
  },
  {
    name: "iptables sets bits of our mark, as Calico's",
    inject: (scene) =>
      onNode(
        scene,
        'iptables-nft',
        ...['-t', 'mangle', '-A', 'PREROUTING', '-j', 'MARK', '--set-xmark', '0x10000/0x10000'],
      ),
    undo: (scene) => onNode(scene, 'nft', 'delete', 'table', 'ip', 'mangle'),
    finds: 'mark-collision',
  },
  {
    name: 'nftables overwrites the whole mark',
    inject: ({ trial }) =>
      trial.node.netns.nft(
        'table inet other { chain pre { type filter hook prerouting priority 0; meta mark set 0x1; }; }\n',
      ),
    undo: ({ trial }) => trial.node.netns.nft('delete table inet other\n'),
    finds: 'mark-collision',
  },
  {
    name: 'rules in both backends of iptables',
    inject: async (scene) => {
      await onNode(scene, 'iptables-legacy', '-A', 'FORWARD', '-j', 'ACCEPT');
      await onNode(scene, 'iptables-nft', '-A', 'INPUT', '-j', 'ACCEPT');
    },
    undo: async (scene) => {
      await onNode(scene, 'iptables-legacy', '-F');
      await onNode(scene, 'nft', 'delete', 'table', 'ip', 'filter');
    },
    finds: 'iptables-mix',
  },
  {
    name: 'the policy of FORWARD is DROP',
    inject: (scene) => onNode(scene, 'iptables-nft', '-P', 'FORWARD', 'DROP'),
    undo: (scene) => onNode(scene, 'nft', 'delete', 'table', 'ip', 'filter'),
    finds: 'forward-policy-drop',
  },
  {
    name: 'a second default route with the same metric',
    inject: ({ trial }) =>
      trial.node.netns.ip('route', 'append', 'default', 'via', '169.254.7.7', 'dev', 'lo', 'onlink'),
    undo: ({ trial }) => trial.node.netns.ip('route', 'del', 'default', 'dev', 'lo'),
    finds: 'default-routes',
  },
  {
    name: 'the MAC of a host interface is another one',
    inject: ({ trial, hostVeth }) => trial.node.netns.ip('link', 'set', hostVeth, 'address', '02:00:00:00:00:77'),
    undo: async ({ trial, hostVeth, pod }) => {
      const [neigh] = await pod.netns.ipJson('neigh', 'show', '169.254.1.1');
      await trial.node.netns.ip('link', 'set', hostVeth, 'address', String(neigh?.['lladdr']));
    },
    finds: 'veth-mac-changed',
  },
];

for (const fault of partOf(DOCTOR_FAULTS, ({ finds }) => finds === 'iptables-mix')) {
  test.serial(`tke-eni doctor: names the fault: ${fault.name}`, async (t) => {
    t.timeout(60_000);
    const { trial, pod } = theNode();
    const scene = await readFaultScene(trial, pod);
    await fault.inject(scene);
    try {
      await names(t, trial, fault.finds);
    } finally {
      await fault.undo(scene);
    }
    t.deepEqual(await idsOf(trial), ['agent-dead'], 'nothing else is left');
  });
}

shortTest.serial(
  'tke-eni doctor: names a configuration of another CNI that comes first, and an executable that is gone',
  async (t) => {
    const { trial } = theNode();
    const conf = join(trial.agent.cniConfDir, '05-other.conflist');
    writeFileSync(conf, '{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"bridge"}]}');
    const plugin = join(trial.agent.cniBinDir, 'tke-route-eni');
    renameSync(plugin, `${plugin}.gone`);
    try {
      t.deepEqual((await idsOf(trial)).toSorted(), ['agent-dead', 'cni-conf-not-first', 'plugin-missing']);
    } finally {
      renameSync(`${plugin}.gone`, plugin);
      rmSync(conf);
    }
  },
);

async function names(t: ExecutionContext, trial: Trial, id: string): Promise<void> {
  const findings = await findingsOf(trial);
  const found = findings.filter((finding) => finding['id'] === id);
  t.is(found.length > 0, true, `${id} is not among ${JSON.stringify(findings)}`);
}

async function idsOf(trial: Trial): Promise<readonly unknown[]> {
  return (await findingsOf(trial)).map(({ id }) => id);
}

async function findingsOf(trial: Trial): Promise<readonly JsonObject[]> {
  const { document } = await askCli(placeOf(trial), 'doctor', ...flagsOf(trial));
  return listOf(document, 'findings');
}

longTest.serial('tke-eni doctor: is silent in the other layout, with both families', async (t) => {
  t.timeout(120_000);
  const other = await openTrial({ ruleMode: 'per-pod', isDual: true, flags: INSTALLS });
  try {
    await other.addPod();
    t.deepEqual(await findingsOf(other), []);
  } finally {
    await other.close();
  }
});

/** Files of a host whose services are in the way. */
const SERVICES: Readonly<Record<string, string>> = {
  '/run/systemd/units/invocation:systemd-networkd.service': '',
  '/run/systemd/units/invocation:NetworkManager.service': '',
  '/etc/cloud/cloud.cfg': 'updates: {network: {when: [boot, hotplug]}}\n',
  '/etc/sysctl.d/60-hardening.conf': 'net.ipv4.conf.*.rp_filter=1\nnet.ipv4.ip_forward=0\n',
};

shortTest.serial('tke-eni doctor: reads the services of the host below --host-root', async (t) => {
  const { trial } = theNode();
  const root = createTempDir('doctor-host');
  try {
    const [eni] = await trial.node.netns.ipJson('link', 'show', 'eth1');
    // As hardware it would be managed by default; in the test's VPC it is a veth.
    const device = { [`/run/NetworkManager/devices/${eni?.['ifindex']}`]: '[device]\nmanaged=true\n' };
    for (const [path, text] of Object.entries({ ...SERVICES, ...device })) {
      mkdirSync(dirname(join(root.path, path)), { recursive: true });
      writeFileSync(join(root.path, path), text);
    }
    const { stateDir, socketPath } = placeOf(trial);
    const places = ['--state-dir', stateDir, '--socket', socketPath, '--host-root', root.path];
    const only = ['--only', 'networkd,network-manager,cloud-init,rp-filter,ip-forward', '-o', 'json'];
    const { code, stdout } = await trial.node.netns.tryRun([
      join(DIST_BIN_DIR, 'tke-eni'),
      'doctor',
      ...only,
      ...places,
    ]);
    t.is(code, 0, 'warnings are no errors');
    t.deepEqual(
      listOf(JSON.parse(stdout), 'findings')
        .map(({ id }) => id)
        .toSorted(),
      ['cloud-init-hotplug', 'ip-forward-at-boot', 'network-manager', 'networkd', 'rp-filter-at-boot'],
    );
  } finally {
    root.close();
  }
});
