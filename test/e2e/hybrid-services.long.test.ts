import test from 'ava';
import { serviceRules } from '../support/kube-proxy/service-rules.ts';
import { expectNoDuplicates, expectServices, hybridServices, PROXY_NODE } from './packets/hybrid-services.ts';
import { type HybridNodeSpec, openHybridWorld } from './packets/hybrid-world.ts';
import { RULE_MODES } from './support/scene.ts';

for (const ruleMode of RULE_MODES) {
  for (const wiring of ['bridge', 'routed'] as const) {
    test.serial(
      `hybrid: Services lead to their Pods, each question is answered once, ${ruleMode}, ${wiring}`,
      async (t) => {
        const kinds = [wiring, 'eni', 'exclusive'] as const;
        const podsOf = (node: number, letters: string): HybridNodeSpec['pods'] =>
          Object.fromEntries(kinds.flatMap((kind) => [...letters].map((letter) => [`${kind}-${node}${letter}`, kind])));
        const world = await openHybridWorld({
          n1: { ruleMode, wiring, pods: podsOf(1, 'ab') },
          n2: { ruleMode, wiring, pods: podsOf(2, 'a') },
        });
        try {
          const services = hybridServices(world);
          await world.node(PROXY_NODE).netns.run(['iptables-restore', '--noflush'], { input: serviceRules(services) });
          await expectNoDuplicates(t, world, services);
          t.log(`figure: ${await expectServices(t, world, services)} questions by Services`);
        } finally {
          await world.close();
        }
      },
    );
  }
}
