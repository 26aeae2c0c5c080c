import test from 'ava';
import { chooseFastPath, type FastPathFindings } from '../../../agent/fast-path/choose-fast-path.ts';

const GOOD: FastPathFindings = {
  role: 'full',
  ciliumChain: undefined,
  hasNftables: true,
  hasBeLiberal: true,
  problem: undefined,
};

test('chooseFastPath: what is wanted by its name, bpf for auto, off where nothing is', (t) => {
  t.deepEqual(chooseFastPath('bpf', GOOD), { wanted: 'bpf', mode: 'bpf', why: '' });
  t.deepEqual(chooseFastPath('auto', GOOD), { wanted: 'auto', mode: 'bpf', why: '' });
  t.deepEqual(chooseFastPath('flowtable', GOOD), { wanted: 'flowtable', mode: 'flowtable', why: '' });
  t.deepEqual(chooseFastPath('off', { ...GOOD, hasNftables: false }), { wanted: 'off', mode: 'off', why: '' });
});

const PROBLEMS: readonly (readonly [Partial<FastPathFindings>, RegExp])[] = [
  [{ role: 'uplinks' }, /--role=uplinks/],
  [{ ciliumChain: '/etc/cni/net.d/00.conflist' }, /cilium-cni is chained \(\/etc\/cni\/net\.d\/00\.conflist\)/],
  [{ hasNftables: false }, /nftables does not work here/],
  [{ hasBeLiberal: false }, /nf_conntrack_tcp_be_liberal: load nf_conntrack/],
  [{ problem: 'the kernel does not take it' }, /^the kernel does not take it$/],
];

for (const [findings, why] of PROBLEMS) {
  test(`chooseFastPath: off, with the reason, for ${JSON.stringify(findings)}`, (t) => {
    for (const wanted of ['bpf', 'flowtable', 'auto'] as const) {
      const choice = chooseFastPath(wanted, { ...GOOD, ...findings });
      t.like(choice, { wanted, mode: 'off' });
      t.regex(choice.why, why);
    }
  });
}
