import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { Story } from '../story.ts';

/** A Pod whose address is kept. */
export const KEPT = {
  annotations: { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never' },
} as const;

/** A Pod whose address is kept ends and comes again on another node, and back. */
export const keptAddress: Story = {
  title: 'an address that is kept follows the Pods of its name',
  world: { flags: ['--enable-static-ip=true', '--claim-expired-duration=10m'] },
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    stage.begin();
    await stage.pod('web-0', first, KEPT);
    const ip = stage.ipOf('web-0');
    for (const node of [second, first, second]) {
      await stage.endPods('web-0');
      await stage.pod('web-0', node, KEPT);
      stage.expect(`web-0 has ${ip}`, stage.ipOf('web-0') === ip);
    }
    await stage.endPods('web-0');
    await stage.until('the claim ends', () => stage.world.objects('vpcipclaims').length === 0, 3_600_000);
  },
};

/** Nodes get blocks of addresses and routes to them; one leaves, and the next gets its block when the route is gone. */
export const podCidrs: Story = {
  title: 'a block of a node that left is given when no route leads to it any more',
  world: {
    flags: [
      ...['--allocate-node-cidrs=true', '--cluster-cidr=192.168.0.0/25', '--node-cidr-mask-size=26'],
      ...['--gr-routes=ipamd', '--default-network=tke-bridge'],
    ],
  },
  tell: async (stage) => {
    const routes = () => [...stage.world.host.model.state.globalRoutes.values()].map(({ cidr }) => cidr);
    const first = await stage.join();
    await stage.until('one route', () => routes().length === 1);
    stage.begin();
    await stage.join();
    await stage.until('two routes', () => routes().length === 2);
    const heal = stage.cloudFault({ fault: { kind: 'error', code: 'InternalError' }, actions: ['DeleteGlobalRoutes'] });
    await stage.leave(first);
    const third = await stage.join();
    await stage.minutes(5);
    heal();
    await stage.until('the third has a block', () => stage.podCidrOf(third) !== undefined, 3_600_000);
    await stage.until('two routes again', () => routes().length === 2, 3_600_000);
    stage.expect('the blocks differ', new Set(routes()).size === 2);
  },
};
