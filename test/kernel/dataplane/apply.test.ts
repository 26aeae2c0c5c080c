import test from 'ava';
import { ApplyError, applyOperations } from '../../../dataplane/apply.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { withTestNode } from './test-node.ts';

const modes = ['compact', 'per-pod'] as const;

for (const ruleMode of modes) {
  test.serial(
    `applyOperations: brings a bare node to the plan, and then nothing is left to do, in ${ruleMode} mode`,
    async (t) => {
      await withTestNode(async ({ network, enis, ip, run, reach }) => {
        const desired = planNode({ ...network, ruleMode }, enis, []);
        const lines = await reach(desired);
        t.true(lines.length > 10);
        t.deepEqual(await reach(desired), []);

        const rules = ip('rule', 'show')
          .split('\n')
          .map((line) => line.replaceAll(/\s+/g, ' '));
        const marks = [
          '1536: from all fwmark 0x50000/0xff0000 lookup 4025 proto 84',
          '1536: from all fwmark 0x60000/0xff0000 lookup 4026 proto 84',
        ];
        for (const mark of marks) t.is(rules.includes(mark), ruleMode === 'compact');
        t.is(rules.includes('512: from all lookup 3999 proto 84'), ruleMode === 'compact');
        t.true(rules.includes('1024: from all to 172.31.0.0/24 lookup main proto 84'));
        t.true(rules.includes('1280: from all fwmark 0x80/0x80 lookup main proto 84'));
        t.true(rules.includes('1537: from 10.0.5.5 lookup 4025 proto 84'));
        t.is(
          ip('route', 'show', 'table', '4025'),
          'default via 10.0.5.1 dev eth5 proto 84 \nunreachable default proto 84 metric 2147483647 \n10.0.5.1 dev eth5 proto 84 scope link',
        );
        t.regex(
          ip('-6', 'route', 'show', 'table', '4026'),
          /^fd00:10:0:6::1 dev eth6 proto 84 .*\ndefault via fd00:10:0:6::1 dev eth6 proto 84 /,
        );
        t.deepEqual(ip.json('route', 'show', 'dev', 'eth5'), []);
        t.is(run('cat', '/proc/sys/net/ipv4/conf/eth5/rp_filter').trim(), '2');
        t.is(run('cat', '/proc/sys/net/ipv4/conf/all/rp_filter').trim(), '0');
        t.regex(
          run('nft', 'list', 'table', 'inet', 'tke_eni'),
          /iifgroup 4025 goto eni_4025\s+iifgroup 4026 goto eni_4026/,
        );
      });
    },
  );
}

const damages: readonly { readonly what: string; readonly command: readonly string[]; readonly mends: RegExp }[] = [
  { what: 'a flushed nftables ruleset', command: ['nft', 'flush', 'ruleset'], mends: /^nft/ },
  { what: 'a flushed chain', command: ['nft', 'flush', 'chain', 'inet', 'tke_eni', 'eni_4025'], mends: /^nft/ },
  {
    what: 'a deleted rule of a chain',
    command: [
      'sh',
      '-c',
      'nft delete rule inet tke_eni prerouting handle $(nft -a list chain inet tke_eni prerouting | sed -n "s/.*eth6.*handle //p")',
    ],
    mends: /^nft/,
  },
  {
    what: 'an added rule in a chain',
    command: ['nft', 'insert', 'rule', 'inet', 'tke_eni', 'prerouting', 'drop'],
    mends: /^nft/,
  },
  {
    what: 'a replaced rule of the same shape',
    command: [
      'sh',
      '-c',
      'nft replace rule inet tke_eni via_4025 handle $(nft -a list chain inet tke_eni via_4025 | sed -n "s/.*mark set.*handle //p") meta mark set meta mark and 0xff00ffff or 0x70000',
    ],
    mends: /^nft/,
  },
  { what: 'an added chain', command: ['nft', 'add', 'chain', 'inet', 'tke_eni', 'guest'], mends: /^nft/ },
  {
    what: 'an added chain with a hook',
    command: ['nft', 'add chain inet tke_eni guest { type filter hook input priority 0; policy drop; }'],
    mends: /^nft/,
  },
  {
    what: 'a chain with the hook of another place',
    command: [
      'nft',
      'flush table inet tke_eni; delete chain inet tke_eni prerouting; add chain inet tke_eni prerouting { type filter hook input priority 7; }',
    ],
    mends: /^nft/,
  },
  { what: 'a table that sleeps', command: ['nft', 'add table inet tke_eni { flags dormant; }'], mends: /^nft/ },
  { what: 'an added set', command: ['nft', 'add set inet tke_eni s { type ipv4_addr; }'], mends: /^nft/ },
];

for (const { what, command, mends } of damages) {
  // One after the other: all block this process while they wait for commands, and an nft of another would seem to hang.
  test.serial(`diffHost: finds and mends ${what}`, async (t) => {
    await withTestNode(async ({ network, enis, run, reach, ip }) => {
      const desired = planNode(network, enis, []);
      await reach(desired);
      const [program = '', ...args] = command;
      run(program, ...args);
      t.regex((await reach(desired)).join('\n'), mends);
      t.deepEqual(await reach(desired), []);
      t.regex(ip('route', 'show', 'table', '4025'), /default via 10\.0\.5\.1/);
    });
  });
}

test('diffHost: leaves foreign routes and rules as they are and reports those in the way', async (t) => {
  await withTestNode(async ({ network, enis, ip, kernel }) => {
    ip('rule', 'add', 'pref', '512', 'lookup', '3999', 'proto', '3');
    ip('rule', 'add', 'pref', '100', 'fwmark', '0x10000/0x10000', 'lookup', '77');
    ip('rule', 'add', 'pref', '1536', 'from', '192.0.2.1', 'iif', 'eth0', 'lookup', '77');
    ip('route', 'add', 'blackhole', '198.51.100.0/24', 'table', '4025');
    ip('link', 'set', 'eth5', 'up');
    ip('route', 'add', '10.0.5.1', 'dev', 'eth5', 'table', '4025', 'proto', 'static');
    const before = [ip('rule', 'show'), ip('route', 'show', 'table', '4025')].join('\n').split('\n');
    const desired = planNode(network, enis, []);
    const { operations, conflicts } = diffHost(desired, await observeHost(kernel, desired));
    t.deepEqual(conflicts.map(({ kind }) => kind).sort(), ['mark', 'priority', 'route', 'rule', 'table']);
    await applyOperations(kernel, operations);
    const after = [ip('rule', 'show'), ip('route', 'show', 'table', '4025')].join('\n').split('\n');
    t.deepEqual(
      before.filter((line) => !after.includes(line)),
      [],
    );
    // Nor does the way back touch them.
    const nothing = { ...planNode(network, [], []), rules: [] };
    await applyOperations(kernel, diffHost(nothing, await observeHost(kernel, nothing)).operations);
    const empty = [ip('rule', 'show'), ip('route', 'show', 'table', '4025')].join('\n').split('\n');
    t.deepEqual(
      before.filter((line) => !empty.includes(line)),
      [],
    );
    t.deepEqual(
      empty.filter((line) => line.includes('proto 84')),
      [],
    );
  });
});

test('applyOperations: takes back what it did when an operation fails, and says so', async (t) => {
  await withTestNode(async ({ network, enis, ip, kernel, run }) => {
    const dump = () =>
      [
        ip('rule', 'show'),
        ip('route', 'show', 'table', 'all'),
        ip('address', 'show'),
        run('nft', 'list', 'ruleset'),
      ].join('\n');
    const untouched = (text: string) =>
      text.split('\n').filter((line) => !/fe80|ff00|valid_lft|state|link\/ether/.test(line));
    const desired = planNode(network, enis, []);
    // Links stay up: taking an ENI down is no undo that anybody wants to wait for in a test of routes.
    for (const { ifname } of enis) ip('link', 'set', ifname, 'up');
    const before = untouched(dump());
    const { operations } = diffHost(desired, await observeHost(kernel, desired));
    const bad: Operation = {
      kind: 'replace-route',
      route: { table: 4025, dst: '198.51.100.0/24', oif: 25, oifname: 'eth5', gateway: '203.0.113.1' },
    };
    const error = await t.throwsAsync(applyOperations(kernel, [...operations, bad]), { instanceOf: ApplyError });
    t.is(error?.operation, bad);
    // ip_forward=1 turns forwarding on for every interface, so nothing is left to do for each of them.
    const isDoneBefore = (operation: Operation): boolean =>
      operation.kind === 'set-sysctl' &&
      operation.key.path.includes('ipv4') &&
      operation.key.path.at(-1) === 'forwarding';
    t.deepEqual(
      error?.done,
      operations.filter((operation) => !isDoneBefore(operation)),
    );
    t.deepEqual(error?.undone, error?.done.toReversed());
    t.regex(
      error?.message ?? '',
      /^cannot apply "ip route replace 198\.51\.100\.0\/24 via 203\.0\.113\.1 dev eth5 table 4025 proto 84": .*Nexthop has invalid gateway/,
    );
    t.deepEqual(untouched(dump()), before);
  });
});
