import test from 'ava';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { SERVICES } from '../../../kube/resource-types.ts';
import { ServiceWorld } from './service-world.ts';

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };
const GREEDY = 60;
const MAX_MS = 600_000;

/** Services of two namespaces, of which one changes all of its own all the time. */
class TwoTenants {
  readonly world: ServiceWorld;
  #round = 0;

  constructor(world: ServiceWorld) {
    this.world = world;
  }

  static async start(): Promise<TwoTenants> {
    const two = new TwoTenants(await ServiceWorld.start());
    for (const name of ['n1', 'n2']) await two.world.join(name);
    const { clock, admin } = two.#scene;
    for (const name of ['shop', 'greedy'])
      await clock.run(admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
    for (let at = 0; at < GREEDY; at++) await two.create('greedy', `s${at}`);
    return two;
  }

  get #scene() {
    return this.world.world.scene;
  }

  async create(namespace: string, name: string): Promise<void> {
    const { clock, admin } = this.#scene;
    const object: KubeObject = {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace } },
      spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }] },
    };
    await clock.run(admin.create(SERVICES, object));
  }

  /** Each Service of the greedy namespace gets another port. */
  async changeAll(): Promise<void> {
    const { clock, admin } = this.#scene;
    this.#round += 1;
    const body = { spec: { ports: [{ port: 80 + (this.#round % 2) }] } };
    const patches = Array.from({ length: GREEDY }, (_, at) =>
      admin.patch(SERVICES, { namespace: 'greedy', name: `s${at}` }, { kind: 'merge', body }),
    );
    await clock.run(Promise.all(patches));
  }

  /** Milliseconds until a Service is served and, deleted then, gone. @param meanwhile is done each second */
  async liveMs(name: string, meanwhile: () => Promise<void>): Promise<number> {
    const { clock, admin } = this.#scene;
    const startMs = clock.monotonicMs();
    const wait = async (holds: () => boolean): Promise<void> => {
      const isSo = await clock.until(holds, MAX_MS, async () => {
        await meanwhile();
        await clock.advance(1_000);
      });
      if (!isSo) throw new Error(`${name} waits for more than ${MAX_MS} ms`);
    };
    await this.create('shop', name);
    await wait(() => this.world.ingress(name).length > 0);
    await clock.run(admin.delete(SERVICES, { namespace: 'shop', name }));
    await wait(() => this.world.service(name) === undefined);
    return clock.monotonicMs() - startMs;
  }
}

test('a namespace whose Services change all the time delays those of another by few turns', async (t) => {
  const two = await TwoTenants.start();
  await two.world.advance(120_000);
  const alone = await two.liveMs('alone', async () => {});
  const beside = await two.liveMs('beside', () => two.changeAll());
  t.log(`alone ${alone} ms, beside ${beside} ms`);
  t.true(beside <= 1.5 * alone, `${beside} ms beside the greedy namespace, ${alone} ms alone`);
  await two.world.world.stop();
});
