import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { ciliumConflists, readNetworkConfs } from '../../../agent/node/network-confs.ts';
import { probeNftables } from '../../../agent/node/node-probe.ts';
import { decideRuleMode } from '../../../agent/repair/choose-rule-mode.ts';
import { NftError } from '../../../dataplane/nft-error.ts';
import { findCiliumChain } from '../../../inspection/node/find-cilium-chain.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { TestClock } from '../use-cases/fixtures.ts';

/** An nft whose first runs end as told. */
function nftThat(...failures: readonly NftError[]) {
  const left = [...failures];
  let runs = 0;
  const read = async () => {
    runs += 1;
    const failure = left.shift();
    if (failure !== undefined) throw failure;
    return undefined;
  };
  return { read, runs: () => runs };
}

test('probeNftables: a refusal of the moment does not decide on the rules of the node', async (t) => {
  const busy = new NftError('NFT_REFUSED', 'list nftables', 'Device or resource busy');
  const slow = new NftError('NFT_FAILED', 'list nftables', '');
  t.true(await probeNftables(nftThat(busy, slow), new TestClock()));
  t.false(await probeNftables(nftThat(busy, busy, busy), new TestClock()), 'a kernel without nftables');
});

test('probeNftables: a tool that is missing is missing', async (t) => {
  const nft = nftThat(new NftError('NFT_MISSING', 'list nftables', ''));
  t.false(await probeNftables(nft, new TestClock()));
  t.is(nft.runs(), 1);
});

test('readNetworkConfs, ciliumConflists: finds what chains cilium-cni, and then auto means per-pod', (t) => {
  const dir = createTempDir('conf');
  t.teardown(() => dir.close());
  t.deepEqual(ciliumConflists(readNetworkConfs(dir.join('missing'))), []);
  mkdirSync(dir.join('folder.conf'));
  execFileSync('mkfifo', [dir.join('00-fifo.conf')]);
  symlinkSync('/dev/zero', dir.join('01-device.conf'));
  writeFileSync(dir.join('10-ours.conflist'), '{"plugins":[{"type":"tke-route-eni"}]}');
  t.deepEqual(ciliumConflists(readNetworkConfs(dir.path)), []);
  const path = dir.join('05-cilium.conflist');
  writeFileSync(path, '{"plugins": [{"type" :\n "cilium-cni"}]}');
  writeFileSync(`${path}.bak`, '{"plugins": [{"type": "cilium-cni"}]}');
  const chained = ciliumConflists(readNetworkConfs(dir.path));
  t.deepEqual(chained, [path]);
  t.like(decideRuleMode('auto', { role: 'full', hasNftables: true, ciliumConflists: chained }), { mode: 'per-pod' });
  t.like(decideRuleMode('auto', { role: 'full', hasNftables: true, ciliumConflists: [] }), { mode: 'compact' });
  t.like(decideRuleMode('auto', { role: 'full', hasNftables: false, ciliumConflists: [] }), { mode: 'per-pod' });
  t.like(decideRuleMode('auto', { role: 'uplinks', hasNftables: true, ciliumConflists: [] }), { mode: 'per-pod' });
  t.like(decideRuleMode('compact', { role: 'full', hasNftables: true, ciliumConflists: chained }), { mode: 'compact' });
});

test('findCiliumChain: finds cilium-cni after our plugin, in the configuration of ours that counts', (t) => {
  const dir = createTempDir('conf');
  t.teardown(() => dir.close());
  const write = (name: string, ...types: string[]): void =>
    writeFileSync(dir.join(name), JSON.stringify({ plugins: types.map((type) => ({ type })) }));
  t.is(findCiliumChain(readNetworkConfs(dir.join('missing')))?.path, undefined);
  write('99-left.conflist', 'tke-route-eni', 'cilium-cni');
  write('10-tke-eni.conflist', 'tke-route-eni');
  t.is(findCiliumChain(readNetworkConfs(dir.path))?.path, undefined, 'runtimes do not take the second one');
  write('05-cilium.conflist', 'cilium-cni');
  t.is(findCiliumChain(readNetworkConfs(dir.path))?.path, undefined, 'Cilium alone');
  writeFileSync(dir.join('06-broken.conflist'), '{"plugins":[{"type":"tke-route-eni"},{"type":"cilium-cni"}]');
  t.is(findCiliumChain(readNetworkConfs(dir.path))?.path, undefined, 'no JSON');
  writeFileSync(dir.join('07-ipam.conf'), '{"type":"cilium-cni","ipam":{"type":"tke-eni-ipamc"}}');
  t.is(findCiliumChain(readNetworkConfs(dir.path))?.path, undefined, 'cilium-cni makes the link');
  write('08-chain.conflist', 'tke-cni', 'portmap', 'cilium-cni');
  t.is(findCiliumChain(readNetworkConfs(dir.path))?.path, dir.join('08-chain.conflist'));
});
