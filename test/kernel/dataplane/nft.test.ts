import test from 'ava';
import { openNft } from '../../../dataplane/nft.ts';
import { withTestNode } from './test-node.ts';

test('openNft: a run whose end was seen too late fails, it is no empty listing', async (t) => {
  await withTestNode(async (node) => {
    node.run('nft', 'add table inet tke_eni');
    const nft = openNft({ netnsPath: node.netns.path, timeoutMs: 100 });
    const reading = nft.read();
    // The run ends in milliseconds, and this process is busy until after the time limit.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
    await t.throwsAsync(reading, { code: 'NFT_FAILED', message: 'list nftables: no end after 100 ms' });
  });
});
