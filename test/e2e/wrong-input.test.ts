import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import type { JsonObject } from '../../sim/support/netns.ts';
import type { CniCall, PrintedCniError } from '../support/exec-cni.ts';
import { waitUntil } from '../support/wait-until.ts';
import { fail } from './support/cni-answers.ts';
import { openScenes } from './support/scene.ts';
import type { ScenePod } from './support/scene-node.ts';

const scenes = openScenes(test, [
  { ruleMode: 'compact', nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 4 }] }] },
  {
    key: 'small',
    ruleMode: 'compact',
    nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 2 }] }],
    // The timer, because no event tells of a foreign rule that is only in the way of our marks.
    agentFlags: { 'repair-interval': '1s', 'ip-cooldown': '1h', 'add-wait': '100ms', 'force-reuse-after': '50ms' },
  },
]);

const CONF_STEP =
  'correct the file in /etc/cni/net.d that the runtime loaded (the agent writes ours again when it starts)';
const ENV_STEP = 'the container runtime sets these variables; to call by hand, see the CNI specification, "Parameters"';
const AGENT_STEP =
  'see whether the tke-eni-agent Pod of this node runs and what it logs: kubectl -n kube-system get pods -o wide | grep tke-eni-agent';
const IFNAME = 'an interface name: 1 to 15 bytes, no "/", ":", "%" or white space, not ".", "..", "all" or "default"';
const CONTAINER_ID = 'a letter or digit, then letters, digits, "_", "." or "-"';

type WrongCall = {
  readonly title: string;
  readonly command?: CniCall['command'];
  /** What goes to standard input; an object is laid over a good conf, where undefined takes a field away. */
  readonly stdin?: string | JsonObject;
  /** Laid over a good environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly error: PrintedCniError;
};

/** What the executable refuses by itself. */
const REFUSED_AT_ONCE: readonly WrongCall[] = [
  {
    title: 'stdin is empty',
    stdin: '',
    error: { code: 6, msg: 'stdin: expected a network configuration as JSON, got nothing', details: CONF_STEP },
  },
  {
    title: 'stdin is white space',
    stdin: ' \n',
    error: { code: 6, msg: 'stdin: expected a network configuration as JSON, got nothing', details: CONF_STEP },
  },
  {
    title: 'stdin is cut off',
    stdin: '{"cniVersion": "1.0.0", "na',
    error: {
      code: 6,
      msg: 'stdin: no JSON: Unterminated string in JSON at position 27 (line 1 column 28)',
      details: CONF_STEP,
    },
  },
  {
    title: 'stdin is no JSON',
    stdin: 'cniVersion: 1.0.0',
    error: {
      code: 6,
      msg: `stdin: no JSON: Unexpected token 'c', "cniVersion: 1.0.0" is not valid JSON`,
      details: CONF_STEP,
    },
  },
  {
    title: 'stdin is a list',
    stdin: '[]',
    error: { code: 6, msg: 'stdin: expected a JSON object', details: CONF_STEP },
  },
  {
    title: 'the CNI version is no text',
    stdin: { cniVersion: 1 },
    error: { code: 6, msg: 'stdin: cniVersion: expected a text, got 1', details: CONF_STEP },
  },
  {
    title: 'the CNI version is unsupported',
    stdin: { cniVersion: '0.1.1' },
    error: {
      code: 1,
      msg: 'CNI version 0.1.1 is not supported',
      details:
        'conf: [0.1.1]; plugin: [0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]; set cniVersion in the network configuration to one of the latter',
    },
  },
  {
    title: 'the CNI version is of the future',
    stdin: { cniVersion: '2.0.0' },
    error: {
      code: 1,
      msg: 'CNI version 2.0.0 is not supported',
      details:
        'conf: [2.0.0]; plugin: [0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]; set cniVersion in the network configuration to one of the latter',
    },
  },
  {
    title: 'there is no CNI version',
    stdin: { cniVersion: undefined },
    error: {
      code: 1,
      msg: 'CNI version 0.1.0 (the conf has no cniVersion) is not supported',
      details:
        'conf: [0.1.0 (the conf has no cniVersion)]; plugin: [0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]; set cniVersion in the network configuration to one of the latter',
    },
  },
  {
    title: 'STATUS is asked in a version that has none',
    command: 'STATUS',
    error: {
      code: 1,
      msg: 'CNI version 1.0.0 has no command STATUS',
      details: 'STATUS exists since 1.1.0; conf: [1.0.0]; plugin: [0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]',
    },
  },
  {
    title: 'all variables but the command are missing',
    env: { CNI_CONTAINERID: undefined, CNI_NETNS: undefined, CNI_IFNAME: '', CNI_ARGS: undefined },
    error: {
      code: 4,
      msg: `environment: CNI_CONTAINERID: expected ${CONTAINER_ID}, as ADD requires, got nothing; CNI_NETNS: expected the absolute path of a network namespace, as ADD requires, got nothing; CNI_IFNAME: expected ${IFNAME}, as ADD requires, got nothing`,
      details: ENV_STEP,
    },
  },
  {
    title: 'the command is empty',
    env: { CNI_COMMAND: '' },
    error: {
      code: 4,
      msg: 'environment: CNI_COMMAND: expected one of ADD, DEL, CHECK, STATUS, GC, VERSION, got ""',
      details: ENV_STEP,
    },
  },
  {
    title: 'the command is unknown',
    env: { CNI_COMMAND: 'add' },
    error: {
      code: 4,
      msg: 'environment: CNI_COMMAND: expected one of ADD, DEL, CHECK, STATUS, GC, VERSION, got "add"',
      details: ENV_STEP,
    },
  },
  {
    title: 'every variable is malformed',
    env: { CNI_CONTAINERID: '../etc', CNI_NETNS: 'run/netns/x', CNI_IFNAME: 'eth0/..', CNI_ARGS: 'K8S_POD_NAME' },
    error: {
      code: 4,
      msg: `environment: CNI_CONTAINERID: expected ${CONTAINER_ID}, got "../etc"; CNI_NETNS: expected the absolute path of a network namespace, got "run/netns/x"; CNI_IFNAME: expected ${IFNAME}, got "eth0/.."; CNI_ARGS: expected KEY=VALUE pairs separated by ";", got "K8S_POD_NAME"`,
      details: ENV_STEP,
    },
  },
  {
    title: 'IFNAME has 16 bytes',
    env: { CNI_IFNAME: 'a234567890123456' },
    error: {
      code: 4,
      msg: `environment: CNI_IFNAME: expected ${IFNAME}, got "a234567890123456"`,
      details: ENV_STEP,
    },
  },
  {
    title: 'DEL lacks its container id',
    command: 'DEL',
    env: { CNI_CONTAINERID: '', CNI_NETNS: '' },
    error: {
      code: 4,
      msg: `environment: CNI_CONTAINERID: expected ${CONTAINER_ID}, as DEL requires, got nothing`,
      details: ENV_STEP,
    },
  },
  {
    title: 'every field has the wrong type',
    stdin: {
      name: 7,
      backend: 'agent.sock',
      mtu: '1500',
      routeTable: -1,
      disableIPv6: 'yes',
      timeoutMs: 5,
      ipam: { type: 'host-local' },
    },
    error: {
      code: 7,
      msg: 'network configuration: name: expected a letter or digit, then letters, digits, "_", "." or "-", got 7; backend: expected "unix:" and the absolute path of a socket (107 bytes at most), or "host:port", got "agent.sock"; mtu: expected a whole number from 68 to 65535, got "1500"; routeTable: expected a whole number from 0 to 4294967295, got -1; disableIPv6: expected true or false, got "yes"; timeoutMs: expected a whole number from 100 to 600000, got 5; ipam.type: expected one of "tke-eni-ipamc", got "host-local"',
      details: CONF_STEP,
    },
  },
  {
    title: 'the network has no name',
    stdin: { name: undefined },
    error: { code: 7, msg: 'network configuration: name: expected a value, got nothing', details: CONF_STEP },
  },
  {
    title: 'prevResult is malformed',
    stdin: { prevResult: { ips: [{ address: 5 }], interfaces: {} } },
    error: {
      code: 7,
      msg: 'network configuration: prevResult.interfaces: expected a list, got {}; prevResult.ips[0].address: expected a text, got 5',
      details: CONF_STEP,
    },
  },
  {
    title: 'CHECK gets no prevResult',
    command: 'CHECK',
    error: {
      code: 7,
      msg: 'network configuration: prevResult: expected the result of ADD, as CHECK requires, got nothing',
      details: CONF_STEP,
    },
  },
];

for (const { title, command = 'ADD', stdin = {}, env = {}, error } of REFUSED_AT_ONCE) {
  test.serial(`wrong input: refused in full when ${title}`, async (t) => {
    const { node } = scenes.get('compact');
    const pod = await node.newPod();
    const conf = typeof stdin === 'string' ? stdin : node.conf(stdin);
    t.deepEqual(fail(t, await node.call(command, pod, { conf, env })), error);
    t.deepEqual(await pod.netns.linkNames(), ['lo']);
  });
}

type WrongSandbox = {
  readonly title: string;
  /** Makes the sandbox wrong; returns CNI variables to lay over. */
  readonly make: (pod: ScenePod, dir: string) => Promise<Readonly<Record<string, string>>>;
  readonly error: (pod: ScenePod, dir: string) => PrintedCniError;
};

const NETNS_STEP = 'expected the path of a network namespace, as /run/netns/…';

/** What only the agent can see. */
const REFUSED_BY_AGENT: readonly WrongSandbox[] = [
  {
    title: 'the netns path does not exist',
    make: async () => ({ CNI_NETNS: '/run/netns/tke-test-no-such' }),
    error: () => ({
      code: 4,
      msg: 'CNI_NETNS /run/netns/tke-test-no-such does not exist',
      details: NETNS_STEP,
    }),
  },
  {
    title: 'the netns path is a file',
    make: async (_pod, dir) => {
      writeFileSync(join(dir, 'plain-file'), '');
      return { CNI_NETNS: join(dir, 'plain-file') };
    },
    error: (_pod, dir) => ({
      code: 4,
      msg: `CNI_NETNS ${join(dir, 'plain-file')} is no network namespace`,
      details: NETNS_STEP,
    }),
  },
  {
    title: 'the netns path is a folder',
    make: async (_pod, dir) => ({ CNI_NETNS: dir }),
    error: (_pod, dir) => ({ code: 4, msg: `CNI_NETNS ${dir} is no network namespace`, details: NETNS_STEP }),
  },
  {
    title: 'the netns path is a namespace of another kind',
    make: async () => ({ CNI_NETNS: `/proc/${process.pid}/ns/mnt` }),
    error: () => ({
      code: 4,
      msg: `CNI_NETNS /proc/${process.pid}/ns/mnt is no network namespace`,
      details: NETNS_STEP,
    }),
  },
  {
    title: "the netns is the host's own",
    make: async (pod) => ({ CNI_NETNS: pod.node.netns.path }),
    error: (pod) => ({
      code: 4,
      msg: `CNI_NETNS ${pod.node.netns.path} is the host's own network namespace`,
      details: 'a Pod in the host network needs no CNI; wiring it would change the node itself',
    }),
  },
  {
    title: 'IFNAME is taken in the sandbox',
    make: async (pod) => {
      await pod.netns.ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'other');
      return {};
    },
    error: (pod) => ({
      code: 106,
      msg: `cannot wire the Pod: the sandbox ${pod.containerId} already has an interface eth0 that is not ours; choose another CNI_IFNAME or delete it`,
    }),
  },
  {
    title: "IFNAME is the loopback's",
    make: async () => ({ CNI_IFNAME: 'lo' }),
    error: (pod) => ({
      code: 106,
      msg: `cannot wire the Pod: the sandbox ${pod.containerId} already has an interface lo that is not ours; choose another CNI_IFNAME or delete it`,
    }),
  },
  {
    title: 'the container id is longer than it may be',
    make: async () => ({ CNI_CONTAINERID: 'c'.repeat(201) }),
    error: () => ({
      code: 4,
      msg: `container id "${'c'.repeat(201)}": expected letters, digits, "_.-"`,
      details: 'see CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS',
    }),
  },
];

for (const { title, make, error } of REFUSED_BY_AGENT) {
  test.serial(`wrong input: refused by the agent, which leaves nothing, when ${title}`, async (t) => {
    const { node } = scenes.get('compact');
    const pod = await node.newPod();
    const env = await make(pod, node.dir);
    const links = await pod.netns.linkNames();
    t.deepEqual(fail(t, await node.call('ADD', pod, { env })), error(pod, node.dir));
    t.deepEqual(await pod.netns.linkNames(), links);
    t.deepEqual(await node.hostVeths(), []);
    await scenes.verify(t, 'compact');
  });
}

test.serial('wrong input: a second interface in one sandbox is refused and the first goes on working', async (t) => {
  const { node, vpc } = scenes.get('compact');
  const pod = await node.addPod();
  const error = fail(t, await node.call('ADD', { ...pod, ifName: 'net1' }));
  t.deepEqual(error, {
    code: 103,
    msg: `cannot wire the Pod: the sandbox ${pod.containerId} already leads 169.254.1.1/32 elsewhere, "169.254.1.1/32 dev net1 proto 84 scope link" cannot be added; one sandbox takes one such interface`,
    details: 'ip route add 169.254.1.1/32 dev if3 table main proto 84 scope link',
  });
  t.deepEqual(await pod.netns.linkNames(), ['eth0', 'lo']);
  t.true(await pod.netns.ping(vpc.outside.ip));
  await scenes.verify(t, 'compact');
  await node.delete(pod);
});

/** An error that says how long it waited, without that: a busy machine makes seconds of 100 ms. */
function withoutWait(error: PrintedCniError): PrintedCniError {
  if (!/ \(waited \d+ s\)$/.test(error.msg)) throw new Error(`it does not say how long it waited: ${error.msg}`);
  return { ...error, msg: error.msg.replace(/ \(waited \d+ s\)$/, '') };
}

test.serial('wrong input: a full pool says what there is of each kind', async (t) => {
  const { node } = scenes.get('small');
  const [a, b] = [await node.addPod(), await node.addPod()];
  const pod = await node.newPod();
  t.deepEqual(withoutWait(fail(t, await node.call('ADD', pod))), {
    code: 101,
    msg: 'no address left: want IPv4, free 0, cooling 0, in use 2',
  });
  t.deepEqual(await pod.netns.linkNames(), ['lo']);
  await node.delete(a, b);
  await scenes.verify(t, 'small');
});

test.serial('wrong input: an ENI that is gone is named by its MAC', async (t) => {
  const { node, vpc } = scenes.get('small');
  const [eni] = node.enis;
  await node.netns.ip('link', 'delete', eni?.ifname ?? '');
  const pod = await node.newPod();
  const answer = await waitUntil(
    async () => {
      const tried = await node.call('ADD', pod);
      return tried.error?.code === 102 ? tried : (await node.call('DEL', pod)) && false;
    },
    { what: 'ADD that says that the ENI is gone' },
  );
  t.deepEqual(withoutWait(fail(t, answer)), {
    code: 102,
    msg: 'no ENI of this node is there',
    details: `eni-1: no link with MAC ${eni?.mac}`,
  });
  await vpc.replug('eni-1');
  const again = await waitUntil(() => node.add(pod).catch(() => undefined), { what: 'ADD when the ENI is back' });
  t.true(await again.netns.ping(vpc.outside.ip));
  await node.delete(again);
});

test.serial("wrong input: somebody else's route in an ENI's table is named and left alone", async (t) => {
  const { node } = scenes.get('small');
  const [eni] = node.enis;
  const [link] = await node.netns.ipJson('link', 'show', 'dev', eni?.ifname ?? '');
  const rules = await node.netns.ipJson('rule');
  const table = String(rules.find((rule) => rule['src'] === eni?.primaryIp)?.['table']);
  await node.netns.ip(
    'route',
    'add',
    '198.51.100.0/24',
    'via',
    eni?.gateway ?? '',
    'dev',
    String(link?.['ifname']),
    'onlink',
    'table',
    table,
  );
  const pod = await node.newPod();
  const answer = await waitUntil(
    async () => {
      const tried = await node.call('ADD', pod);
      return tried.error?.code === 103 ? tried : (await node.call('DEL', pod)) && false;
    },
    { what: 'ADD that says that the table is used' },
  );
  const shown = `198.51.100.0/24 via ${eni?.gateway} dev ${String(link?.['ifname'])} table ${table} proto 3 onlink`;
  t.deepEqual(withoutWait(fail(t, answer)), {
    code: 103,
    msg: 'no ENI can serve: its place is occupied',
    details: `eni-1: table ${table} is used by others: "${shown}"`,
  });
  const status = fail(t, await node.call('STATUS', undefined, { conf: node.conf({ cniVersion: '1.1.0' }) }));
  t.is(status.code, 51);
  t.regex(status.details ?? '', new RegExp(`table ${table}`));
  const foreign = await node.netns.ipJson('route', 'show', 'table', table, '198.51.100.0/24');
  t.is(foreign.length, 1, 'it is left alone');

  await node.netns.ip('route', 'delete', '198.51.100.0/24', 'table', table);
  const served = await waitUntil(() => node.add(pod).catch(() => undefined), {
    what: 'ADD when the table is ours again',
  });
  await node.delete(served);
  await scenes.verify(t, 'small');
});

test.serial("wrong input: somebody else's rule with bits of our marks is named and left alone", async (t) => {
  const { node } = scenes.get('small');
  const rule = ['pref', '900', 'fwmark', '0x40000/0x40000', 'lookup', 'main'];
  await node.netns.ip('rule', 'add', ...rule);
  const conf = node.conf({ cniVersion: '1.1.0' });
  const status = () => node.call('STATUS', undefined, { conf });
  const answer = await waitUntil(async () => ((await status()).exitCode === 1 ? status() : false), {
    what: 'STATUS that says so',
  });
  t.deepEqual(fail(t, answer), {
    code: 51,
    msg: '1 places of ours in the kernel are occupied by others',
    details:
      'IPv4 rule "pref 900 fwmark 0x40000/0x40000 lookup main proto 0" at priority 900 uses bits of our mark mask 0xff0000; choose another --eni-mark-mask or move its owner',
  });
  t.is((await node.netns.ipJson('rule', 'show', 'pref', '900')).length, 1);
  await node.netns.ip('rule', 'delete', ...rule);
  await waitUntil(async () => (await status()).exitCode === 0, { what: 'STATUS 0 again' });
});

test.serial('wrong input: the socket lets nobody in but root', async (t) => {
  const { node } = scenes.get('compact');
  const { mode, uid } = statSync(node.agent.socketPath);
  t.is(mode & 0o777, 0o600);
  t.is(uid, 0);
});

type DeadEnd = {
  readonly title: string;
  readonly backend: (dir: string) => string;
  readonly make?: (dir: string) => void;
  readonly reason: (dir: string) => string;
};

/** Places where no agent answers. */
const DEAD_ENDS: readonly DeadEnd[] = [
  {
    title: 'there is no socket',
    backend: (dir) => `unix:${join(dir, 'none.sock')}`,
    reason: (dir) => `UNREACHABLE: connect ENOENT ${join(dir, 'none.sock')}`,
  },
  {
    title: 'the socket path is a plain file',
    make: (dir) => writeFileSync(join(dir, 'file.sock'), ''),
    backend: (dir) => `unix:${join(dir, 'file.sock')}`,
    reason: (dir) => `UNREACHABLE: connect ECONNREFUSED ${join(dir, 'file.sock')}`,
  },
  {
    title: 'the socket path is a folder',
    make: (dir) => mkdirSync(join(dir, 'folder.sock')),
    backend: (dir) => `unix:${join(dir, 'folder.sock')}`,
    reason: (dir) => `UNREACHABLE: connect ECONNREFUSED ${join(dir, 'folder.sock')}`,
  },
  {
    title: 'nobody listens on the TCP port',
    backend: () => '127.0.0.1:1',
    reason: () =>
      'UNREACHABLE: connect ECONNREFUSED 127.0.0.1:1; the agent serves TCP only with its flag --listen-address=127.0.0.1:1, and only root; or name "unix:/run/tke-eni/agent.sock" as backend',
  },
];

for (const { title, backend, make, reason } of DEAD_ENDS) {
  test.serial(`wrong input: ADD says where it tried and what came of it when ${title}`, async (t) => {
    const { node } = scenes.get('compact');
    make?.(node.dir);
    const conf = node.conf({ backend: backend(node.dir) });
    t.deepEqual(fail(t, await node.call('ADD', await node.newPod(), { conf })), {
      code: 11,
      msg: `the agent on ${backend(node.dir)} does not answer`,
      details: `ADD: ${reason(node.dir)}; ${AGENT_STEP}`,
    });
  });
}

test.serial('wrong input: ADD says so when a dead agent left its socket behind', async (t) => {
  const { node } = scenes.get('compact');
  await node.killAgent();
  const { socketPath } = node.agent;
  t.deepEqual(fail(t, await node.call('ADD', await node.newPod())), {
    code: 11,
    msg: `the agent on unix:${socketPath} does not answer`,
    details: `ADD: UNREACHABLE: connect ECONNREFUSED ${socketPath}; ${AGENT_STEP}`,
  });
  await node.startAgent();
});

test.serial('wrong input: ADD says so when what listens is no agent', async (t) => {
  const { node } = scenes.get('compact');
  const path = join(node.dir, 'chatty.sock');
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  try {
    const conf = node.conf({ backend: `unix:${path}` });
    t.deepEqual(fail(t, await node.call('ADD', await node.newPod(), { conf })), {
      code: 11,
      msg: `the agent on unix:${path} does not answer`,
      details: `ADD: PROTOCOL: what answers there does not use HTTP/2; ${AGENT_STEP}`,
    });
  } finally {
    server.close();
  }
});
