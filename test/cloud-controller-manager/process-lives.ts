import { classifyError } from '../../cloud/classify-error.ts';
import type { TencentApi } from '../../cloud/tencent/requests.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { KubeError } from '../../kube/kube-error.ts';

/** Where a process dies: before or after its n-th call that changes something, or that reads, of the API server's or the cloud's. */
type Crash = {
  readonly of: 'change' | 'read';
  readonly at: number;
  readonly moment: 'before' | 'after';
};

/** The calls of processes that follow each other; one of them may die at a call. A dead one has no effect any more. */
export class ProcessLives {
  crash: Crash | undefined;
  /** Calls so far, of all processes. */
  readonly made = { change: 0, read: 0 };
  #life = { isOver: false };

  /** True while the process is dead that was begun last. */
  get isOver(): boolean {
    return this.#life.isOver;
  }

  /** Begins another process. The one before is over. */
  begin(): { readonly kube: (client: KubeClient) => KubeClient; readonly api: (api: TencentApi) => TencentApi } {
    this.#life.isOver = true;
    const life = { isOver: false };
    this.#life = life;
    return { kube: (client) => this.#kubeOf(client, life), api: (api) => this.#apiOf(api, life) };
  }

  #kubeOf(client: KubeClient, life: { isOver: boolean }): KubeClient {
    const dead = (): Error => new KubeError({ code: 'UNAVAILABLE', request: 'any', text: 'the process is dead' });
    const read = <T>(run: () => Promise<T>): Promise<T> => this.#counted('read', life, dead, run);
    const change = <T>(run: () => Promise<T>): Promise<T> => this.#counted('change', life, dead, run);
    const counted = this.#counted.bind(this);
    return {
      get: (...args) => read(() => client.get(...args)),
      listPage: (...args) => read(() => client.listPage(...args)),
      watch: async function* (...args) {
        await counted('read', life, dead, async () => undefined);
        for await (const event of client.watch(...args)) {
          if (life.isOver) throw dead();
          yield event;
        }
      },
      create: (...args) => change(() => client.create(...args)),
      update: (...args) => change(() => client.update(...args)),
      patch: (...args) => change(() => client.patch(...args)),
      delete: (...args) => change(() => client.delete(...args)),
    };
  }

  #apiOf(api: TencentApi, life: { isOver: boolean }): TencentApi {
    const dead = (): Error => classifyError({ code: 'NETWORK', action: 'any', text: 'the process is dead' });
    return { ...api, call: (...args) => this.#counted('read', life, dead, () => api.call(...args)) };
  }

  async #counted<T>(of: Crash['of'], life: { isOver: boolean }, dead: () => Error, run: () => Promise<T>): Promise<T> {
    if (life.isOver) throw dead();
    this.made[of] += 1;
    const { crash } = this;
    const isHere = crash?.of === of && crash.at === this.made[of];
    const kill = (): void => {
      this.crash = undefined;
      life.isOver = true;
    };
    if (isHere && crash.moment === 'before') kill();
    if (life.isOver) throw dead();
    const answer = run();
    await answer.catch(() => undefined);
    if (isHere && crash.moment === 'after') kill();
    // What is answered to a dead process is not read.
    if (life.isOver) throw dead();
    return await answer;
  }
}
