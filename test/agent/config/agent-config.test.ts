import test from 'ava';
import { readAgentConfig } from '../../../agent/config/agent-config.ts';
import { OPTIONS } from '../../../agent/config/options.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { EX_CONFIG } from '../../../runtime/settings/read-settings.ts';
import { variableOf } from '../../../runtime/settings/render-options.ts';

type Given = {
  argv?: readonly string[];
  env?: Readonly<Record<string, string>>;
  files?: Readonly<Record<string, string>>;
};

function read({ argv = [], env = {}, files = {} }: Given) {
  return readAgentConfig({
    argv,
    env,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      return content;
    },
  });
}

function configOf(given: Given) {
  const outcome = read(given);
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  return outcome.config;
}

function faultsOf(given: Given): readonly string[] {
  try {
    read(given);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map((fault) => `${fault.path}: expected ${fault.expected}, got ${fault.got}`);
  }
}

test('readAgentConfig: has a default for every setting', (t) => {
  const config = configOf({});
  t.deepEqual(Object.keys(config), Object.keys(OPTIONS));
  t.like(config, {
    socket: '/run/tke-eni/agent.sock',
    ipCooldownMs: 120_000,
    eniMarkMask: 0x00ff0000,
    ruleMode: 'auto',
    podCidrs: [],
  });
});

test('readAgentConfig: returns what cannot be changed', (t) => {
  const config = configOf({ argv: ['--pod-cidr=10.1.0.0/16'] });
  t.true(Object.isFrozen(config));
  t.true(Object.isFrozen(config.podCidrs));
});

test('readAgentConfig: takes flags before variables, variables before the file, the file before defaults', (t) => {
  const files = { '/c.yaml': 'ip-cooldown: 1s\nadd-wait: 11s\negress: node\n' };
  const env = { TKE_ENI_CONFIG: '/c.yaml', TKE_ENI_IP_COOLDOWN: '2s', TKE_ENI_ADD_WAIT: '12s' };
  t.like(configOf({ argv: ['--ip-cooldown', '3s'], env, files }), {
    ipCooldownMs: 3_000,
    addWaitMs: 12_000,
    egress: 'node',
    gcIntervalMs: 60_000,
  });
});

test('readAgentConfig: takes --config before TKE_ENI_CONFIG', (t) => {
  const files = { '/a.yaml': 'mtu: 1400', '/b.yaml': 'mtu: 1300' };
  t.is(configOf({ argv: ['--config=/a.yaml'], env: { TKE_ENI_CONFIG: '/b.yaml' }, files }).mtu, 1400);
});

const reads = test.macro((t, given: Given, want: object) => t.like(configOf(given), want));
test(
  'readAgentConfig: reads a switch without a value',
  reads,
  { argv: ['--port-mapping', '--bandwidth=false'] },
  { portMapping: true, bandwidth: false },
);
test('readAgentConfig: switches off what is on by default', reads, { argv: ['--nodeport=false'] }, { nodePort: false });
test(
  'readAgentConfig: reads a repeated flag as a list',
  reads,
  { argv: ['--cri-socket', '/a', '--cri-socket=/b'] },
  { criSockets: ['/a', '/b'] },
);
test('readAgentConfig: reads a list of none', reads, { argv: ['--cri-socket', ''] }, { criSockets: [] });
test(
  'readAgentConfig: reads commas in a variable as a list',
  reads,
  { env: { TKE_ENI_POD_CIDR: '10.1.0.0/16,fd01::/64' } },
  { podCidrs: ['10.1.0.0/16', 'fd01::/64'] },
);
test(
  'readAgentConfig: reads YAML lists, numbers, hex numbers and booleans',
  reads,
  {
    argv: ['--config', '/c'],
    files: { '/c': 'vpc-cidr: [10.0.0.0/8]\nmtu: 1400\neni-mark-mask: 0x0ff00000\nport-mapping: true\nplugin-dir:\n' },
  },
  { vpcCidrs: ['10.0.0.0/8'], mtu: 1400, eniMarkMask: 0x0ff00000, portMapping: true, pluginDir: '' },
);
test(
  'readAgentConfig: reads an empty file',
  reads,
  { argv: ['--config', '/c'], files: { '/c': '# nothing yet\n' } },
  { mtu: 0 },
);
test(
  'readAgentConfig: adds the parts of a time',
  reads,
  { argv: ['--gc-interval=1m30s', '--repair-interval=1500ms'] },
  { gcIntervalMs: 90_000, repairIntervalMs: 1_500 },
);
test(
  'readAgentConfig: ignores variables that Kubernetes makes of Service names',
  reads,
  { env: { TKE_ENI_IPAMD_SERVICE_HOST: '10.0.0.1', TKE_ENI_IPAMD_PORT: 'tcp://10.0.0.1:1' } },
  { mtu: 0 },
);

const refuses = test.macro((t, given: Given, want: readonly string[]) => t.deepEqual(faultsOf(given), want));
test(
  'readAgentConfig: refuses with the role uplinks what is done by links of Pods',
  refuses,
  { argv: ['--role=uplinks', '--rule-mode=compact', '--egress=node', '--default-network=tke-bridge'] },
  [
    '--rule-mode: expected per-pod or auto, as --role=uplinks wires no Pods: compact marks packets by links of ours, got "compact"',
    '--egress: expected eni, as --role=uplinks wires no Pods: node marks packets by links of ours, got "node"',
    '--default-network: expected tke-route-eni, as --role=uplinks wires no Pods, got "tke-bridge"',
  ],
);
test(
  'readAgentConfig: the role uplinks goes with per-pod',
  refuses,
  { argv: ['--role=uplinks', '--rule-mode=per-pod'] },
  [],
);
test('readAgentConfig: suggests the flag that was meant', refuses, { argv: ['--ip-cooldwon', '1s'] }, [
  '--ip-cooldwon: expected a flag that exists, such as --ip-cooldown, got "--ip-cooldwon"',
]);
test('readAgentConfig: points to the help for a flag like no other', refuses, { argv: ['--frobnicate'] }, [
  '--frobnicate: expected a flag that exists; --help lists them, got "--frobnicate"',
]);
test('readAgentConfig: refuses other arguments', refuses, { argv: ['run', '-v'] }, [
  'run: expected a flag; there are no other arguments, got "run"',
  '-v: expected a flag; there are no other arguments, got "-v"',
]);
test('readAgentConfig: refuses a flag without its value', refuses, { argv: ['--mtu', '--bandwidth'] }, [
  '--mtu: expected a value, got nothing',
]);
test('readAgentConfig: refuses two values where one counts', refuses, { argv: ['--mtu=1400', '--mtu=1500'] }, [
  '--mtu: expected one value, got ["1400","1500"]',
]);
test('readAgentConfig: names the variable that is wrong', refuses, { env: { TKE_ENI_RULE_MODE: 'fast' } }, [
  'TKE_ENI_RULE_MODE: expected one of auto, compact, per-pod, got "fast"',
]);
test(
  'readAgentConfig: names the file, key and line that is wrong',
  refuses,
  { argv: ['--config=/c'], files: { '/c': '\nmtuu: 1\nmtu: [1]\n' } },
  [
    '/c: mtuu (line 2): expected a setting that exists; --help lists them, got 1',
    '/c: mtu (line 3): expected 0, or a whole number from 1280 to 65535, got [1]',
  ],
);
test(
  'readAgentConfig: refuses a file that holds no settings',
  refuses,
  { argv: ['--config=/c'], files: { '/c': 'hello' } },
  ['/c: the whole: expected settings, one `key: value` a line, got "hello"'],
);
test('readAgentConfig: says why the file cannot be read', refuses, { argv: ['--config=/none'] }, [
  '--config: expected a file that can be read, /none, got "ENOENT"',
]);
test('readAgentConfig: refuses to take an address early after the wait is over', refuses, { argv: ['--add-wait=1s'] }, [
  '--force-reuse-after: expected at most --add-wait, 1000 ms, got 5000',
]);
test(
  'readAgentConfig: names the faults of all sources at once',
  refuses,
  {
    argv: ['--config=/c', '--egress=vpc', '--unheard'],
    env: { TKE_ENI_MTU: '-1' },
    files: { '/c': 'log-level: loud' },
  },
  [
    '--unheard: expected a flag that exists; --help lists them, got "--unheard"',
    '--egress: expected one of eni, node, got "vpc"',
    'TKE_ENI_MTU: expected 0, or a whole number from 1280 to 65535, got "-1"',
    'log-level in the --config file: expected one of debug, info, warn, error, got "loud"',
  ],
);

/** Texts that each kind of value refuses. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  socket: ['', 'run/agent.sock'],
  'listen-address': [
    '61677',
    'localhost',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    ':1',
    '0.0.0.0:61677',
    '[::]:61677',
    '10.0.0.4:61677',
    'localhost:61677',
  ],
  'node-name': ['Node', '-a', 'a_b'],
  'ip-cooldown': ['120', '-1s', '1d', '1.5s', '2h', ''],
  'cri-socket': ['unix:///run/x.sock', 'x'],
  'eni-mark-mask': ['0', '0x80', '0xff', '0xff00ff00', '0x7f0000', '0x1ff0000000', 'x'],
  'primary-interface': ['eth0:1', 'a/b', '..', 'x'.repeat(16), 'a b'],
  'pod-cidr': ['10.0.0.1/8', '10.0.0.0'],
  'port-mapping': ['yes', '1'],
  mtu: ['1e3', '70000', ''],
};
for (const [flag, texts] of Object.entries(REFUSED)) {
  for (const text of texts) {
    test(`readAgentConfig: refuses --${flag}=${text}`, (t) => {
      t.deepEqual(
        faultsOf({ argv: [`--${flag}=${text}`] }).map((fault) => fault.split(':')[0]),
        [`--${flag}`],
      );
    });
  }
}

test('readAgentConfig: takes masks of eight bits and more wherever they lie', (t) => {
  for (const mask of ['0xff00', '0x00ff0000', '0xff000000', '0xffff0000', '65280']) {
    t.is(configOf({ argv: [`--eni-mark-mask=${mask}`] }).eniMarkMask, Number(mask));
  }
});

test('readAgentConfig: answers --help and --version whatever else is wrong', (t) => {
  t.is(read({ argv: ['--nope', '--help'] }).kind, 'help');
  t.is(read({ argv: ['--version', '--mtu=x'] }).kind, 'version');
});

test('OPTIONS: have flags of their own, and variables that no Service makes', (t) => {
  const flags = Object.values(OPTIONS).map((option) => option.flag);
  t.is(new Set(flags).size, flags.length);
  t.deepEqual(
    flags.filter((flag) => /_SERVICE_(HOST|PORT)|_PORT$|_PORT_\d/.test(variableOf(flag))),
    [],
  );
});

test('EX_CONFIG: is that of sysexits.h', (t) => {
  t.is(EX_CONFIG, 78);
});

test('readAgentConfig: reports faults in keys and in values of the file at once', (t) => {
  const files = { '/c.yaml': 'mut: 1500\nip-cooldown: 120\nnodeport: yes\ncri-socket: {a: 1}\n' };
  const places = faultsOf({ argv: ['--config=/c.yaml'], files }).map((fault) => fault.split(':').slice(0, 2).join(':'));
  t.deepEqual(places.toSorted(), [
    '/c.yaml: cri-socket (line 4)',
    '/c.yaml: mut (line 1)',
    'ip-cooldown in the --config file: expected a time from 0ms to 1h, such as 500ms, 120s or 1m30s, got "120"',
    'nodeport in the --config file: expected true or false, got "yes"',
  ]);
});

for (const [what, content] of [
  ['a list that holds itself', 'cri-socket: &a [*a]\n'],
  ['a list without a bottom', `mtu: ${'['.repeat(100_000)}\n`],
] as const) {
  test(`readAgentConfig: says that the file is wrong when it has ${what}`, (t) => {
    const faults = faultsOf({ argv: ['--config=/c.yaml'], files: { '/c.yaml': content } });
    t.true(faults.length > 0);
    t.true(faults.every((fault) => fault.startsWith('/c.yaml: ')));
  });
}

test('readAgentConfig: takes true or false after a switch', (t) => {
  t.like(configOf({ argv: ['--nodeport', 'false', '--bandwidth', '--port-mapping', 'true'] }), {
    nodePort: false,
    bandwidth: true,
    portMapping: true,
  });
});

test('readAgentConfig: refuses an MTU that cannot carry IPv6, and takes 0', (t) => {
  t.is(configOf({ argv: ['--mtu=0'] }).mtu, 0);
  t.is(configOf({ argv: ['--mtu=1280'] }).mtu, 1280);
  for (const mtu of ['5', '1279', '65536', '-1']) {
    t.regex(
      faultsOf({ argv: [`--mtu=${mtu}`] }).join(),
      /^--mtu: expected 0, or a whole number from 1280 to 65535, got /,
    );
  }
});

const settingsOf = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const outcome = readAgentConfig({ argv, env, readFile: () => '' });
  return outcome.kind === 'run' ? outcome.config : undefined;
};

test('readAgentConfig: takes the node name of NODE_NAME, unless it is told otherwise', (t) => {
  const argv = ['--supply-source=cluster'];
  t.is(settingsOf(argv, { NODE_NAME: 'n1' })?.nodeName, 'n1');
  t.is(settingsOf(argv, { NODE_NAME: 'n1', TKE_ENI_NODE_NAME: 'n2' })?.nodeName, 'n2');
  t.is(settingsOf([...argv, '--node-name=n3'], { NODE_NAME: 'n1' })?.nodeName, 'n3');
});

test('readAgentConfig: needs a node name in a cluster, and a burst not below the rate', (t) => {
  const error = t.throws(() => settingsOf(['--supply-source=cluster', '--kube-client-qps=30']));
  t.regex(error?.message ?? '', /--node-name: .*NODE_NAME/);
  t.regex(error?.message ?? '', /--kube-client-burst: expected at least --kube-client-qps, 30/);
});

test('readAgentConfig: talks to the API server at the documented rate', (t) => {
  t.like(settingsOf([]), { supplySource: 'file', kubeClientQps: 10, kubeClientBurst: 20, kubeconfig: '', master: '' });
});

test('readAgentConfig: chained plugins are names, or a JSON list of names and plugin objects', (t) => {
  const pluginsOf = (text: string) => configOf({ argv: [`--chained-plugins=${text}`] }).chainedPlugins;
  t.deepEqual(pluginsOf(''), []);
  t.deepEqual(pluginsOf('tuning,cilium-cni'), [{ type: 'tuning' }, { type: 'cilium-cni' }]);
  const tuning = { type: 'tuning', sysctl: { 'net.core.somaxconn': '512' } };
  t.deepEqual(pluginsOf(`\n ${JSON.stringify([tuning, 'cilium-cni'], null, 2)}\n`), [tuning, { type: 'cilium-cni' }]);
  for (const text of [
    ...['portmap', 'bandwidth', 'tke-route-eni', 'tke-cni', 'cilium-cni,cilium-cni', '../sh', 'a b', ',', '-x'],
    ...['[', '{"type":"tuning"}', '[1]', '[{}]', '[{"type":1}]', '[{"type":""}]', '[{"type":".."}]', '["x/y"]'],
    ...['[{"type":"x","name":"n"}]', '[{"type":"x","prevResult":{}}]', '[{"type":"x","ipam":{}}]', 'x'.repeat(65)],
    Array.from({ length: 17 }, (_, index) => `p${index}`).join(),
  ]) {
    t.is(faultsOf({ argv: [`--chained-plugins=${text}`] }).length, 1, text);
  }
  const argv = ['--chained-plugins=cilium-cni', '--default-network=tke-bridge'];
  t.regex(faultsOf({ argv }).join(), /^--default-network: expected tke-route-eni, as --chained-plugins has cilium-cni/);
});
