import { type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import { type CriMessage, criPath, decodeCri, encodeCri } from './cri-proto.ts';

/** A Pod sandbox that the stand-in runtime claims to have. */
type StandInSandbox = {
  readonly id: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid?: string;
  /** Default 'ready'. */
  readonly state?: 'ready' | 'not-ready';
  readonly ips?: readonly string[];
  /** Handler of its RuntimeClass; default that of the runtime. */
  readonly handler?: string;
  /** Path of its network namespace, told in the verbose status as containerd does. */
  readonly netns?: string;
};

/** A container runtime that only answers what sandboxes there are. */
export type CriServer = {
  readonly socketPath: string;
  /** Replaces the list; the next question is answered from it. */
  setSandboxes(sandboxes: readonly StandInSandbox[]): void;
  /** Adds one sandbox, or replaces the one of the same id. */
  addSandbox(sandbox: StandInSandbox): void;
  /** Forgets one sandbox. */
  removeSandbox(id: string): void;
  readonly sandboxes: readonly StandInSandbox[];
  /** How often the list was asked for. */
  readonly listCount: number;
  /** Answers every call with UNAVAILABLE until told otherwise, as a runtime that is restarting. */
  setBroken(isBroken: boolean): void;
  close(): Promise<void>;
};

/** Starts the stand-in runtime on a unix socket; the caller closes it. */
export async function startCriServer(
  socketPath: string,
  sandboxes: readonly StandInSandbox[] = [],
): Promise<CriServer> {
  let known = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]));
  let isBroken = false;
  let listCount = 0;
  const server = new Server();
  const answer = (
    respond: (request: CriMessage) => CriMessage | undefined,
  ): handleUnaryCall<CriMessage, CriMessage> => {
    return (call, callback) => {
      if (isBroken) callback({ code: status.UNAVAILABLE, details: 'the stand-in runtime is told to be broken' });
      else {
        const response = respond(call.request);
        if (response === undefined) callback({ code: status.NOT_FOUND, details: 'no such sandbox' });
        else callback(null, response);
      }
    };
  };
  server.addService(serviceOf(['Version', 'ListPodSandbox', 'PodSandboxStatus']), {
    Version: answer(() => ({
      version: '0.1.0',
      runtimeName: 'stand-in',
      runtimeVersion: '1',
      runtimeApiVersion: 'v1',
    })),
    ListPodSandbox: answer(() => {
      listCount += 1;
      return { items: [...known.values()].map(listed) };
    }),
    PodSandboxStatus: answer((request) => {
      const sandbox = known.get(String(request['podSandboxId']));
      return sandbox === undefined ? undefined : described(sandbox);
    }),
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    socketPath,
    setSandboxes: (next) => {
      known = new Map(next.map((sandbox) => [sandbox.id, sandbox]));
    },
    addSandbox: (sandbox) => {
      known.set(sandbox.id, sandbox);
    },
    removeSandbox: (id) => {
      known.delete(id);
    },
    get sandboxes() {
      return [...known.values()];
    },
    get listCount() {
      return listCount;
    },
    setBroken: (next) => {
      isBroken = next;
    },
    close: async () => server.forceShutdown(),
  };
}

function listed(sandbox: StandInSandbox): CriMessage {
  return {
    id: sandbox.id,
    metadata: { name: sandbox.podName, namespace: sandbox.podNamespace, uid: sandbox.podUid ?? '', attempt: 0 },
    state: sandbox.state === 'not-ready' ? 'SANDBOX_NOTREADY' : 'SANDBOX_READY',
    ...(sandbox.handler === undefined ? {} : { runtimeHandler: sandbox.handler }),
  };
}

function described(sandbox: StandInSandbox): CriMessage {
  const [ip = '', ...others] = sandbox.ips ?? [];
  const namespaces = [
    { type: 'pid' },
    { type: 'network', ...(sandbox.netns === undefined ? {} : { path: sandbox.netns }) },
  ];
  return {
    status: { ...listed(sandbox), network: { ip, additionalIps: others.map((other) => ({ ip: other })) } },
    info: { info: JSON.stringify({ runtimeSpec: { linux: { namespaces } } }) },
  };
}

function serviceOf(methods: readonly string[]): ServiceDefinition {
  return Object.fromEntries(
    methods.map((method) => [
      method,
      {
        path: criPath(method),
        requestStream: false,
        responseStream: false,
        requestSerialize: (message: CriMessage) => encodeCri(`${method}Request`, message),
        requestDeserialize: (bytes: Buffer) => decodeCri(`${method}Request`, bytes),
        responseSerialize: (message: CriMessage) => encodeCri(`${method}Response`, message),
        responseDeserialize: (bytes: Buffer) => decodeCri(`${method}Response`, bytes),
      },
    ]),
  );
}
