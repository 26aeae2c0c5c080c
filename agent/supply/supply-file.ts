import { dirname } from 'node:path';
import { nodeEniConfig, unknownFields } from '../../crd/node-eni-config.ts';
import { runInBackground } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { FileError, readRegularText } from '../../runtime/read-regular-file.ts';
import { decodeYaml } from '../../runtime/settings/read-yaml.ts';
import { type FolderWatch, watchFolder } from '../../runtime/watch-folder.ts';
import type { Supply } from '../journal/supply.ts';
import { supplyOfConfig } from './supply-of-config.ts';
import { afterInvalid, type InForce, type SupplyEvent, type SupplySource } from './supply-source.ts';

/** Options of a supply file. */
export type SupplyFileOptions = InForce & {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Logger;
  /** Name of this node: a file for another node is refused. Absent: any file is accepted. */
  readonly nodeName?: string;
  /** Delay after the first notification of a change, milliseconds: editors write in several steps. */
  readonly debounceMs?: number;
  /** Poll interval, milliseconds: a folder that is created later, or was replaced, cannot be watched before. */
  readonly pollMs?: number;
};

const DEBOUNCE_MS = 100;
const POLL_MS = 5_000;
/** Largest file that is read, bytes; decoding has a lower limit. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Opens a NodeENIConfig YAML file as a source of supply and follows it, edits, renames and swapped links included.
 * Reads it before it returns. While the file is invalid or missing the last good supply stays in force, and the reason
 * is reported. Owns a watch and a timer until `close`.
 */
export function openSupplyFile(path: string, options: SupplyFileOptions): SupplySource {
  return new SupplyFile(path, options);
}

class SupplyFile implements SupplySource {
  readonly #path: string;
  readonly #options: SupplyFileOptions;
  readonly #listeners = new Set<(event: SupplyEvent) => void>();
  readonly #closing = new AbortController();
  #content: string | undefined;
  #supply: Supply | undefined;
  #problem: ConfigError | undefined;
  /** Of the folder and not the file: editors and mounted ConfigMaps put a new file, or link, in the old one's place. */
  readonly #folder: FolderWatch;
  #isReadPending = false;

  constructor(path: string, options: SupplyFileOptions) {
    this.#path = path;
    this.#options = options;
    // Watch first, then read: an edit in between is read twice rather than never.
    this.#folder = watchFolder(dirname(path), () => runInBackground('reading the supply file', this.#readSoon()));
    this.#folder.renew();
    this.#read();
    runInBackground('following the supply file', this.#poll());
  }

  latest(): Supply | undefined {
    return this.#supply;
  }

  problem(): ConfigError | undefined {
    return this.#problem;
  }

  subscribe(listener: (event: SupplyEvent) => void): () => void {
    this.#listeners.add(listener);
    if (this.#supply !== undefined) listener({ kind: 'supply', supply: this.#supply });
    if (this.#problem !== undefined) listener({ kind: 'invalid', error: this.#problem });
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closing.abort();
    this.#folder.close();
    this.#listeners.clear();
  }

  async #readSoon(): Promise<void> {
    if (this.#isReadPending) return;
    this.#isReadPending = true;
    const isOpen = await this.#wait(this.#options.debounceMs ?? DEBOUNCE_MS);
    this.#isReadPending = false;
    if (isOpen) this.#read();
  }

  async #poll(): Promise<void> {
    while (await this.#wait(this.#options.pollMs ?? POLL_MS)) {
      this.#folder.renew();
      this.#read();
    }
  }

  /** Returns false once closed. */
  async #wait(ms: number): Promise<boolean> {
    try {
      await this.#options.clock.sleep(ms, this.#closing.signal);
      return !this.#closing.signal.aborted;
    } catch (error) {
      if (this.#closing.signal.aborted) return false;
      throw error;
    }
  }

  #read(): void {
    try {
      const content = this.#readContent();
      if (content === this.#content) return;
      this.#content = content;
      const config = decodeYaml(content, this.#path, nodeEniConfig);
      this.#checkNode(config.metadata.name);
      const unknown = unknownFields(config);
      if (unknown.length > 0)
        this.#options.log.warn('supply file has fields that are not known', { path: this.#path, unknown });
      if (config.annotationFaults.length > 0)
        this.#options.log.warn('supply file has annotations that are not taken', { faults: config.annotationFaults });
      this.#supply = supplyOfConfig(config, config.settings);
      this.#problem = undefined;
      this.#notify({ kind: 'supply', supply: this.#supply });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#report(error);
    }
  }

  #checkNode(name: string): void {
    const { nodeName } = this.#options;
    if (nodeName === undefined || nodeName === name) return;
    const expected = `${nodeName}, the name of this node`;
    throw new ConfigError(this.#path, [{ path: 'metadata.name', expected, got: JSON.stringify(name) }]);
  }

  #readContent(): string {
    try {
      return readRegularText(this.#path, MAX_BYTES);
    } catch (error) {
      this.#content = undefined;
      const got =
        error instanceof Error && 'code' in error && !(error instanceof FileError)
          ? String(error.code)
          : error instanceof Error
            ? error.message
            : String(error);
      throw new ConfigError(this.#path, [{ path: '', expected: 'a readable NodeENIConfig file', got }]);
    }
  }

  /** Reports a fault once: the poll finds a missing file again and again. */
  #report(error: ConfigError): void {
    if (this.#problem?.message === error.message) return;
    this.#problem = error;
    const next = afterInvalid({ inForce: () => this.#supply ?? this.#options.inForce() });
    this.#options.log.error(`supply file is invalid, ${next}`, {
      path: this.#path,
      error,
      epoch: this.#supply?.epoch,
    });
    this.#notify({ kind: 'invalid', error });
  }

  #notify(event: SupplyEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}
