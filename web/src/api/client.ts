// Asking the server. Relative addresses: the token is part of the page's own path.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

/** Where answers come from: the server, or what a report carries with it. */
export interface Transport {
  json(name: string, parameters: Parameters, signal?: AbortSignal): Promise<unknown>;
  binary(name: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** The address of a download, or null where there is nothing to ask. */
  address(name: string, parameters: Parameters): string | null;
  /** Answers that were kept are asked anew. */
  forget(): void;
}

/** `name?key=value&…` without what is null. */
export function queryText(name: string, parameters: Parameters): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || value === undefined) continue;
    const text = typeof value === 'number' && Number.isFinite(value) ? integerText(value) : String(value);
    parts.push(`${key}=${encodeURIComponent(text)}`);
  }
  return parts.length > 0 ? `${name}?${parts.join('&')}` : name;
}

// 1e21 would be sent as "1e+21".
function integerText(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}

class HttpTransport implements Transport {
  private readonly kept = new Map<string, Promise<unknown>>();
  private generation = 0;

  json(name: string, parameters: Parameters, signal?: AbortSignal): Promise<unknown> {
    const query = queryText(name, parameters);
    const wanted = (answer: unknown): unknown => {
      signal?.throwIfAborted();
      return answer;
    };
    const kept = this.kept.get(query);
    if (kept) return kept.then(wanted);
    // Shared by all who ask the same, so that nobody's giving up takes it from the others.
    const answer = this.ask(query).then((response) => response.json() as Promise<unknown>);
    if (name === 'status' || name === 'session') return answer;
    // What the user comes back to is there at once; errors and what was given up are asked again.
    this.kept.set(query, answer);
    answer.catch(() => this.kept.delete(query));
    if (this.kept.size > 300) this.kept.delete(this.kept.keys().next().value ?? '');
    return answer.then(wanted);
  }

  async binary(name: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer> {
    const response = await this.ask(queryText(name, parameters), signal);
    return response.arrayBuffer();
  }

  forget(): void {
    this.kept.clear();
  }

  address(name: string, parameters: Parameters): string {
    return `api/${queryText(name, parameters)}`;
  }

  private async ask(query: string, signal?: AbortSignal): Promise<Response> {
    const response = await fetch(`api/${query}`, signal ? { signal } : {});
    const generation = Number(response.headers.get('X-MemScope-Generation') ?? 0);
    if (generation > this.generation) {
      this.generation = generation;
      this.kept.clear();
    }
    if (response.ok) return response;
    let message = `${response.status} ${response.statusText}`;
    try {
      const body = (await response.json()) as { error?: string };
      if (body.error) message = body.error;
    } catch {
      // No body: the status line says it.
    }
    throw new ApiError(response.status, message);
  }
}

let transport: Transport = new HttpTransport();

export function useTransport(next: Transport): void {
  transport = next;
}

// What the first picture is made of; other questions wait for `restUntil`.
const kFirst = new Set(['status', 'session', 'legend', 'lanes']);
let rest: Promise<void> | null = null;

export function restUntil(time: Promise<void>): void {
  rest = time;
  void time.then(() => (rest = null));
}

export async function ask<T>(name: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  if (rest && !kFirst.has(name)) {
    await rest;
    signal?.throwIfAborted();
  }
  return (await transport.json(name, parameters, signal)) as T;
}

/** What was answered may read differently now, though the index is the same: a diagnosis has come. */
export function forget(): void {
  transport.forget();
}

export function askBinary(name: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrayBuffer> {
  return transport.binary(name, parameters, signal);
}

export function downloadAddress(name: string, parameters: Parameters): string | null {
  return transport.address(name, parameters);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
