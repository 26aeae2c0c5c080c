import type { KubeClient } from '../../kube/kube-client.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CloudHost } from '../../sim/vpc/api/host.ts';
import type { SentCall } from './auditors/auditor.ts';
import type { MachineClock, Timeline } from './clock.ts';
import { Life, type Told } from './life.ts';
import { recordingLogger, textOf } from './record.ts';
import { between, type Draw, type Streams } from './streams.ts';

/** What a program runs on in one life. */
type ReplicaLife = {
  readonly life: Life;
  readonly log: Logger;
  /** Number of this life among those of all replicas: in each id that it makes. */
  readonly serial: number;
};

/** A program that runs. */
export type Running = { readonly isLeading: boolean; readonly ended: Promise<void> };

/** What a program has in every life. */
export type ProgramWorld = ReplicaLife & {
  /** Name of the replica. */
  readonly replica: string;
  readonly streams: Streams;
  readonly kube: KubeClient;
  readonly host: CloudHost;
  readonly flags: readonly string[];
};

/** Starts a program in a life of its own. */
export type StartProgram<T extends Running = Running> = (world: ProgramWorld) => Promise<T>;

/** Where a replica is. */
type Surroundings<T extends Running> = {
  readonly time: Timeline;
  readonly streams: Streams;
  readonly clock: MachineClock;
  readonly away: Draw;
  /** Starts the program in a life. */
  readonly start: (life: ReplicaLife) => Promise<T>;
  readonly nextSerial: () => number;
  readonly note: (who: string, what: string) => void;
  readonly violate: (auditor: string, text: string) => void;
  readonly onLife: (life: Life) => void;
  readonly onSent: (call: SentCall) => () => void;
  /** A life of this name hears of objects. */
  readonly onTold: (life: string, told: Told) => void;
};

/** How long a program that died is away, milliseconds. */
const AWAY_MS = [1_000, 5_000] as const;

/** A replica of a program: one life after the other under one name. The next begins some seconds after the death of the one before. */
export class Replica<T extends Running = Running> {
  readonly name: string;
  readonly #around: Surroundings<T>;
  #life: Life | undefined;
  #running: T | undefined;
  #lives = 0;
  #isOver = false;

  constructor(name: string, around: Surroundings<T>) {
    this.name = name;
    this.#around = around;
  }

  /** The last life that began. */
  get life(): Life | undefined {
    return this.#life;
  }

  /** The program of now; undefined while none runs. */
  get running(): T | undefined {
    return this.#running;
  }

  get isLeading(): boolean {
    return this.#life?.isDead === false && this.#running?.isLeading === true;
  }

  /** Begins a life. */
  async start(): Promise<void> {
    const { streams, clock, note, violate, onSent, onTold, onLife, nextSerial } = this.#around;
    this.#lives += 1;
    const name = `${this.name}-${String(this.#lives).padStart(3, '0')}`;
    const jitter = streams.of(`${name} jitter`);
    const life = new Life(name, {
      clock,
      note: (what) => note(name, what),
      jitterMs: () => Math.floor(between(jitter, [0, 3])),
      onCall: (action, request) => onSent({ life: name, action, request }),
      onTold: (told) => onTold(name, told),
      onDeath: () => this.#replace(),
    });
    this.#life = life;
    onLife(life);
    const log = recordingLogger((what) => note(name, what));
    const running = await this.#around.start({ life, log, serial: nextSerial() });
    this.#running = running;
    running.ended.then(
      () => violate('A15', `${name} ended by itself`),
      (error: unknown) => violate('A15', `${name} ended: ${textOf(error)}`),
    );
  }

  /** Ends its life for good. */
  retire(): void {
    this.#isOver = true;
    this.#life?.kill();
  }

  #replace(): void {
    this.#running = undefined;
    if (this.#isOver) return;
    const { time, away } = this.#around;
    void time.sleep(between(away, AWAY_MS)).then(() => this.start());
  }
}
