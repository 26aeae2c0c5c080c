import { lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type ClientReadableStream, credentials, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { type KubeletMessage, kubeletCall } from './kubelet-proto.ts';

/** A device as the plugin told of it. */
export type ToldDevice = { readonly ID: string; readonly health: string };

/** What kubelet does with a registration: `drop` takes it and ends the watch at once; `ignore` takes it and never calls. */
export type RegisterMode = 'accept' | 'refuse' | 'hang' | 'drop' | 'ignore';

/** What kind of kubelet it is. */
type KubeletOptions = {
  /** Default 'accept'. */
  readonly mode?: RegisterMode | undefined;
  /** True for one before 1.26, which puts the socket's path where HTTP/2 wants a host. */
  readonly isOld?: boolean | undefined;
};

/** A registration that arrived. */
type SeenRegistration = { readonly atMs: number; readonly request: KubeletMessage };

/** Kubelet's device manager and nothing else of it. */
export type KubeletDeviceManager = {
  readonly registrations: readonly SeenRegistration[];
  /** Devices of a resource as told last; undefined when nobody tells them now. */
  devices(resource: string): readonly ToldDevice[] | undefined;
  /** How often the devices of any resource were told. */
  readonly tellings: number;
  /** Watches that are open now. */
  readonly openWatches: number;
  setMode(mode: RegisterMode): void;
  /** Asks the plugin of a resource as an admission does. */
  ask(resource: string, method: 'Allocate', request: KubeletMessage): Promise<KubeletMessage>;
  /** Ids that Pods hold, by resource; told by the pod resources API. */
  hold(resource: string, ids: readonly string[]): void;
  /** Ends like a killed process: connections break, the sockets' files stay. */
  kill(): Promise<void>;
};

const CALLS = {
  register: kubeletCall('/v1beta1.Registration/Register', 'RegisterRequest', 'Empty'),
  list: kubeletCall('/v1.PodResourcesLister/List', 'ListPodResourcesRequest', 'ListPodResourcesResponse'),
  watch: kubeletCall('/v1beta1.DevicePlugin/ListAndWatch', 'Empty', 'ListAndWatchResponse', true),
  Allocate: kubeletCall('/v1beta1.DevicePlugin/Allocate', 'AllocateRequest', 'AllocateResponse'),
} as const;

/**
 * Starts a device manager in a kubelet's folder. As the real one it makes its folders, removes every socket that lies
 * there, those of plugins included, and only then listens; a plugin whose watch ended has no devices.
 */
export async function startKubeletDeviceManager(
  kubeletDir: string,
  options: KubeletOptions = {},
): Promise<KubeletDeviceManager> {
  const kubelet = new StandInKubelet(kubeletDir, options);
  await kubelet.start();
  return kubelet;
}

class StandInKubelet implements KubeletDeviceManager {
  readonly registrations: SeenRegistration[] = [];
  tellings = 0;
  readonly #directory: string;
  readonly #podResources: string;
  readonly #server = new Server({ 'grpc.enable_channelz': 0 });
  readonly #clients = new Map<string, Client>();
  readonly #watches = new Set<ClientReadableStream<KubeletMessage>>();
  readonly #devices = new Map<string, readonly ToldDevice[]>();
  readonly #held = new Map<string, readonly string[]>();
  readonly #isOld: boolean;
  #mode: RegisterMode;

  constructor(kubeletDir: string, { mode = 'accept', isOld = false }: KubeletOptions) {
    this.#directory = join(kubeletDir, 'device-plugins');
    this.#podResources = join(kubeletDir, 'pod-resources');
    this.#mode = mode;
    this.#isOld = isOld;
  }

  async start(): Promise<void> {
    for (const folder of [this.#directory, this.#podResources]) {
      mkdirSync(folder, { recursive: true, mode: 0o750 });
      for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path, { force: true });
      }
    }
    this.#server.addService({ register: CALLS.register }, { register: this.#register.bind(this) });
    this.#server.addService({ list: CALLS.list }, { list: this.#list.bind(this) });
    await this.#listen(join(this.#podResources, 'kubelet.sock'));
    await this.#listen(join(this.#directory, 'kubelet.sock'));
  }

  devices(resource: string): readonly ToldDevice[] | undefined {
    return this.#devices.get(resource);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  setMode(mode: RegisterMode): void {
    this.#mode = mode;
  }

  hold(resource: string, ids: readonly string[]): void {
    this.#held.set(resource, ids);
  }

  async ask(resource: string, method: 'Allocate', request: KubeletMessage) {
    const client = this.#clients.get(resource);
    if (client === undefined) throw new Error(`no plugin of ${resource}`);
    const { path, requestSerialize, responseDeserialize } = CALLS[method];
    const answer = Promise.withResolvers<KubeletMessage>();
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, response) => {
      if (error !== null) answer.reject(error);
      else if (response !== undefined) answer.resolve(response);
    });
    return await answer.promise;
  }

  async kill(): Promise<void> {
    for (const watch of this.#watches) watch.cancel();
    for (const client of this.#clients.values()) client.close();
    this.#server.forceShutdown();
  }

  /** Under another name first: who binds a name unlinks it when it closes, which a killed process does not. */
  async #listen(path: string): Promise<void> {
    const bound = Promise.withResolvers<void>();
    this.#server.bindAsync(`unix:${path}.bind`, ServerCredentials.createInsecure(), (error) =>
      error === null ? bound.resolve() : bound.reject(error),
    );
    await bound.promise;
    renameSync(`${path}.bind`, path);
  }

  #register(
    { request }: { readonly request: KubeletMessage },
    reply: (error: object | null, answer?: KubeletMessage) => void,
  ): void {
    this.registrations.push({ atMs: performance.now(), request });
    if (this.#mode === 'hang') return;
    if (this.#mode === 'refuse') {
      reply({ code: status.UNKNOWN, details: 'told to refuse' });
      return;
    }
    reply(null, {});
    if (this.#mode !== 'ignore') this.#watch(String(request['resource_name']), String(request['endpoint']));
  }

  #watch(resource: string, endpoint: string): void {
    const socket = join(this.#directory, endpoint);
    const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_channelz': 0,
      ...(this.#isOld ? { 'grpc.default_authority': socket } : {}),
    });
    this.#clients.get(resource)?.close();
    this.#clients.set(resource, client);
    const { path, requestSerialize, responseDeserialize } = CALLS.watch;
    const watch = client.makeServerStreamRequest<KubeletMessage, KubeletMessage>(
      path,
      requestSerialize,
      responseDeserialize,
      {},
    );
    this.#watches.add(watch);
    watch.on('data', (message: KubeletMessage) => {
      this.tellings++;
      this.#devices.set(resource, message['devices'] as readonly ToldDevice[]);
      if (this.#mode === 'drop') watch.cancel();
    });
    const over = (): void => {
      this.#watches.delete(watch);
      if (this.#clients.get(resource) !== client) return;
      // Whatever is registered under the name now: as kubelet does.
      this.#devices.delete(resource);
    };
    watch.on('error', over);
    watch.on('end', over);
  }

  #list(_call: unknown, reply: (error: null, answer: KubeletMessage) => void): void {
    const devices = [...this.#held].map(([resource, ids]) => ({ resource_name: resource, device_ids: ids }));
    reply(null, { pod_resources: [{ name: 'p', namespace: 'ns', containers: [{ name: 'c', devices }] }] });
  }
}
