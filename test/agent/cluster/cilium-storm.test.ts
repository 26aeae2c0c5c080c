import test from 'ava';
import { type CiliumNodeScene, openCiliumNodeScene } from './cilium-node-scene.ts';
import type { AgentLife } from './cluster-scene.ts';
import { endLease, leaseTo } from './cluster-scene.ts';

// A scripted operator that goes by Cilium's code, a node whose Pods come and go, and both ended at random.

const SEEDS = [1, 2, 3];
const STEPS = 60;
const IPS = Array.from({ length: 8 }, (_, index) => `192.168.1.${index + 1}`);

/** The next number of a linear congruential generator, below `limit`. */
function randomOf(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * limit);
  };
}

/** One look of the operator: each entry one state further. `freed` has what it gave to others. */
async function operate(scene: CiliumNodeScene, freed: Set<string>): Promise<void> {
  for (const [ip, state] of Object.entries(scene.releases())) {
    if (state === 'do-not-release') await scene.patchStatus({ 'release-ips': { [ip]: null } });
    if (state !== 'ready-for-release') continue;
    const pool = scene.pool();
    if (ip in pool) {
      freed.add(ip);
      await scene.setPool(Object.fromEntries(Object.entries(pool).filter(([other]) => other !== ip)));
    }
    await scene.patchStatus({ 'release-ips': { [ip]: 'released' } });
  }
}

for (const seed of SEEDS) {
  test(`cilium-node, seed ${seed}: no address has two owners, and none in use is given back`, async (t) => {
    const scene = await openCiliumNodeScene();
    const random = randomOf(seed);
    const freed = new Set<string>();
    const owners = new Map<string, string>();
    let pods = 0;
    try {
      await scene.create(Object.fromEntries(IPS.map((ip) => [ip, {}])));
      let agent: AgentLife = scene.startAgent();
      await scene.pass();
      const give = (): void => {
        const name = `p${pods++}`;
        const ip = leaseTo(agent, name, scene.clock.bootMs());
        if (ip === undefined) return;
        t.false([...owners.values()].includes(ip), `${ip} has two owners`);
        t.false(freed.has(ip), `${ip} was given back and has a Pod`);
        owners.set(name, ip);
      };
      for (let step = 0; step < STEPS; step++) {
        const ip = IPS[random(IPS.length)] ?? '';
        const name = [...owners.keys()][random(Math.max(1, owners.size))];
        const choice = random(8);
        if (choice <= 1) give();
        else if (choice === 2 && name !== undefined) {
          endLease(agent, name, scene.clock.bootMs());
          owners.delete(name);
        } else if (choice === 3) await scene.mark(ip);
        else if (choice === 4) await operate(scene, freed);
        else if (choice === 5) {
          agent.kill();
          agent = scene.startAgent();
        } else if (choice === 6 && freed.has(ip) && scene.releases()[ip] === undefined) {
          freed.delete(ip);
          await scene.setPool({ ...scene.pool(), [ip]: {} });
        } else await scene.pass(random(3) * 1_000);
        for (const used of owners.values()) t.false(freed.has(used), `${used} is in use and was given back`);
      }
      for (let round = 0; round < 4; round++) {
        await scene.pass(20_000);
        await operate(scene, freed);
      }
      await scene.pass(20_000);
      t.deepEqual(scene.releases(), {}, 'every release ends');
      t.deepEqual(
        Object.entries(scene.used())
          .map(([used, { owner }]) => `${owner} ${used}`)
          .sort(),
        [...owners].map(([name, used]) => `default/${name} ${used}`).sort(),
      );
    } finally {
      scene.close();
    }
  });
}
