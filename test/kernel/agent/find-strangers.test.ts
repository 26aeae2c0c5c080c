import test from 'ava';
import { openStrangers } from '../../../agent/host/find-strangers.ts';
import { withTestNode } from '../dataplane/test-node.ts';

test('openStrangers: an address is wired that a route leads to a link, or that is one of the node', async (t) => {
  await withTestNode(({ ip, kernel }) => {
    ip('link', 'add', 'stranger0', 'type', 'veth', 'peer', 'name', 'stranger1');
    ip('link', 'set', 'stranger0', 'up');
    ip('link', 'set', 'stranger1', 'up');
    const uplinks = new Set(
      ip.json('link', 'show').flatMap(({ ifname, ifindex }) => (/^eth/.test(String(ifname)) ? [Number(ifindex)] : [])),
    );
    const { isWired, find } = openStrangers({ rtnetlink: kernel.rtnetlink, uplinks: () => uplinks });
    for (const [route, table] of [
      [['10.0.5.20/32', 'dev', 'stranger0'], 'main'],
      [['10.0.5.21/32', 'dev', 'stranger0'], '2005'],
      [['fd00:10:0:5::20/128', 'dev', 'stranger0'], 'main'],
    ] as const)
      ip(route[0].includes(':') ? '-6' : '-4', 'route', 'add', ...route, 'table', table);
    ip('rule', 'add', 'pref', '512', 'to', '10.0.5.21', 'lookup', '2005');
    ip('rule', 'add', 'pref', '1536', 'from', '10.0.5.22', 'lookup', '2005');
    ip('address', 'add', '10.0.5.23/32', 'dev', 'lo');
    // These say nothing about one address: a network, a route that leads out, one that refuses, a rule of ours.
    ip('route', 'add', '10.0.6.0/24', 'dev', 'stranger0');
    ip('route', 'add', '10.0.5.24/32', 'dev', 'eth0');
    ip('route', 'add', 'unreachable', '10.0.5.25/32');
    ip('rule', 'add', 'pref', '1536', 'from', '10.0.5.26', 'lookup', '4005', 'proto', '84');
    const taken = ['10.0.5.20', '10.0.5.21', 'fd00:10:0:5::20', '10.0.5.23'];
    const free = ['10.0.6.20', '10.0.5.24', '10.0.5.25', '10.0.5.26', 'fd00:10:0:5::21', '10.0.5.27'];
    t.deepEqual([...taken, ...free].filter(isWired), taken);
    t.deepEqual([...find([...taken, ...free, '10.0.5.22'])].sort(), [...taken, '10.0.5.22'].sort());
    // As we refuse packets to addresses without a Pod.
    ip('rule', 'add', 'pref', '1280', 'lookup', '4001', 'proto', '84');
    ip('route', 'add', 'unreachable', '10.0.5.20/32', 'table', '4001', 'proto', '84');
    t.true(isWired('10.0.5.20'));
    t.true(find(['10.0.5.20']).has('10.0.5.20'));
    ip('link', 'del', 'stranger0');
    t.false(isWired('10.0.5.20'), 'it went with the link');
  });
});
