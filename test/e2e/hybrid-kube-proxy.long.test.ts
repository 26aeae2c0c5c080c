import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { findKubeAssets } from '../cluster/kube-assets.ts';
import { readProxyFacts } from '../support/kube-proxy/read-proxy-facts.ts';
import { startKubeProxy } from '../support/kube-proxy/real-kube-proxy.ts';
import { type LocalDetector, serviceRules } from '../support/kube-proxy/service-rules.ts';
import { expectServices, hybridServices, PROXY_NODE } from './packets/hybrid-services.ts';
import { openHybridWorld } from './packets/hybrid-world.ts';

// The stand-in of kube-proxy against the real one, in a namespace, with the API server of the tests.

const EXECUTABLE = join(findKubeAssets().dir, 'kube-proxy');
const realTest = existsSync(EXECUTABLE) ? test.serial : test.serial.skip;

const DETECTORS: Readonly<Record<string, LocalDetector | undefined>> = {
  'no detection of Pods': undefined,
  'Pods by their range': { cluster: '172.31.0.0/16' },
  'Pods by their interfaces': { interfacePrefix: 'eni' },
};

for (const mode of ['iptables', 'nftables'] as const) {
  for (const [what, detector] of Object.entries(DETECTORS)) {
    realTest(`kube-proxy, ${mode}, ${what}: its rules do what those of the stand-in do`, async (t) => {
      const world = await openHybridWorld({
        n1: {
          ruleMode: 'compact',
          wiring: 'bridge',
          pods: { 'bridge-1a': 'bridge', 'routed-1a': 'routed', 'eni-1a': 'eni', 'exclusive-1a': 'exclusive' },
        },
        n2: { ruleMode: 'compact', wiring: 'routed', pods: { 'routed-2a': 'routed', 'eni-2a': 'eni' } },
      });
      try {
        const { netns, ip: nodeIp } = world.party(PROXY_NODE);
        const services = hybridServices(world);
        const proxy = await startKubeProxy({
          ...{ executable: EXECUTABLE, netns, nodeName: PROXY_NODE, nodeIp, mode, services },
          ...(detector && { detector }),
        });
        try {
          t.deepEqual(await proxy.facts(), readProxyFacts(serviceRules(services, detector), services));
          t.log(`figure: ${await expectServices(t, world, services, detector)} questions by Services`);
        } finally {
          await proxy.close();
        }
      } finally {
        await world.close();
      }
    });
  }
}
