// Long: it needs the executables of Kubernetes, and asks every Service of every Pod in both modes of kube-proxy.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { findKubeAssets } from '../cluster/kube-assets.ts';
import { startKubeProxy } from '../support/kube-proxy/real-kube-proxy.ts';
import { expectServiceStreams, streamedServices, withFastHybrid } from './packets/fast-services.ts';
import { expectServices, hybridServices, PROXY_NODE } from './packets/hybrid-services.ts';
import { RULE_MODES } from './support/scene.ts';

// The real kube-proxy on a node with the fast path: Services of both policies lead to their Pods, and are not learned.

const EXECUTABLE = join(findKubeAssets().dir, 'kube-proxy');
const realTest = existsSync(EXECUTABLE) ? test.serial : test.serial.skip;

for (const mode of ['iptables', 'nftables'] as const) {
  for (const ruleMode of RULE_MODES) {
    realTest(
      `fast path with kube-proxy, ${mode}: Services of both policies lead to their Pods, ${ruleMode}`,
      async (t) => {
        t.timeout(600_000);
        await withFastHybrid(ruleMode, async (world) => {
          const { netns, ip: nodeIp } = world.party(PROXY_NODE);
          const [services, streamed] = [hybridServices(world), streamedServices(world)];
          const proxy = await startKubeProxy({
            ...{ executable: EXECUTABLE, netns, nodeName: PROXY_NODE, nodeIp, mode },
            services: [...services, ...streamed],
          });
          try {
            t.log(`figure: ${await expectServices(t, world, services)} questions by Services`);
            await expectServiceStreams(t, world, streamed);
          } finally {
            await proxy.close();
          }
        });
      },
    );
  }
}
