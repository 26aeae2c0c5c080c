import test from 'ava';
import { decodeEnv } from '../../../cni-plugins/skel/env.ts';
import { CniError } from '../../../cni-plugins/skel/error.ts';

const FULL = {
  CNI_COMMAND: 'ADD',
  CNI_CONTAINERID: '3f0c_b.d-1',
  CNI_NETNS: '/run/netns/x',
  CNI_IFNAME: 'eth0',
  CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=3f;K8S_POD_UID=u-1',
};

function faultOf(env: Record<string, string | undefined>): string {
  try {
    decodeEnv(env);
    return 'no fault';
  } catch (error) {
    if (!(error instanceof CniError) || error.code !== 4) throw error;
    return error.message;
  }
}

test('decodeEnv: reads what Kubernetes runtimes set', (t) => {
  t.deepEqual(decodeEnv(FULL), {
    command: 'ADD',
    containerId: '3f0c_b.d-1',
    netns: '/run/netns/x',
    ifName: 'eth0',
    args: { podNamespace: 'ns', podName: 'web-0', podUid: 'u-1' },
  });
});

test('decodeEnv: reads an ADD without CNI_ARGS', (t) => {
  t.deepEqual(decodeEnv({ ...FULL, CNI_ARGS: undefined }).args, { podNamespace: '', podName: '', podUid: '' });
  t.deepEqual(decodeEnv({ ...FULL, CNI_ARGS: 'A=1=2;;' }).args, { podNamespace: '', podName: '', podUid: '' });
});

for (const [command, missing] of [
  ['ADD', ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME']],
  ['CHECK', ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME']],
  ['DEL', ['CNI_CONTAINERID', 'CNI_IFNAME']],
] as const) {
  test(`decodeEnv: names every variable that ${command} lacks in one error`, (t) => {
    for (const absent of [undefined, '']) {
      const env = { CNI_COMMAND: command, CNI_CONTAINERID: absent, CNI_NETNS: absent, CNI_IFNAME: absent };
      const message = faultOf(env);
      for (const name of ['CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME'] as const) {
        t.is(
          message.includes(`${name}: expected`),
          (missing as readonly string[]).includes(name),
          `${name}: ${message}`,
        );
      }
      t.regex(message, new RegExp(`as ${command} requires, got nothing`));
    }
  });
}

for (const command of ['GC', 'STATUS', 'VERSION'] as const) {
  test(`decodeEnv: asks nothing else for ${command}, and ignores the rest`, (t) => {
    t.is(decodeEnv({ CNI_COMMAND: command }).command, command);
    t.is(decodeEnv({ CNI_COMMAND: command, CNI_IFNAME: 'a/b', CNI_ARGS: '??' }).ifName, '');
  });
}

test('decodeEnv: takes a DEL whose namespace is gone', (t) => {
  t.is(decodeEnv({ ...FULL, CNI_COMMAND: 'DEL', CNI_NETNS: '' }).netns, '');
});

test('decodeEnv: names the command when there is none or one that we do not know', (t) => {
  t.is(faultOf({}), 'environment: CNI_COMMAND: expected one of ADD, DEL, CHECK, STATUS, GC, VERSION, got nothing');
  t.regex(faultOf({ CNI_COMMAND: 'add' }), /got "add"/);
});

for (const [name, value] of [
  ['CNI_CONTAINERID', '-starts-with-dash'],
  ['CNI_CONTAINERID', 'has/slash'],
  ['CNI_CONTAINERID', 'new\nline'],
  ['CNI_NETNS', 'relative/path'],
  ['CNI_IFNAME', '.'],
  ['CNI_IFNAME', '..'],
  ['CNI_IFNAME', 'a/b'],
  ['CNI_IFNAME', 'a:b'],
  ['CNI_IFNAME', 'a b'],
  ['CNI_IFNAME', 'a\tb'],
  ['CNI_IFNAME', 'sixteen-bytes-xx'],
  ['CNI_IFNAME', 'ääääääää'],
  ['CNI_ARGS', 'novalue'],
  ['CNI_ARGS', '=x'],
] as const) {
  test(`decodeEnv: refuses ${name}=${JSON.stringify(value)}`, (t) => {
    t.regex(faultOf({ ...FULL, [name]: value }), new RegExp(`^environment: ${name}: expected `));
  });
}

test('decodeEnv: takes interface names of 15 bytes and odd but legal ones', (t) => {
  for (const name of ['fifteen-bytes-x', 'eth0.100', 'a@b', 'ä', '-']) {
    t.is(decodeEnv({ ...FULL, CNI_IFNAME: name }).ifName, name);
  }
});

test('decodeEnv: reports malformed and missing variables together', (t) => {
  const message = faultOf({ CNI_COMMAND: 'ADD', CNI_CONTAINERID: '?', CNI_IFNAME: 'a/b' });
  t.regex(message, /CNI_CONTAINERID: .*got "\?"; CNI_NETNS: .*got nothing; CNI_IFNAME: .*got "a\/b"/);
});
