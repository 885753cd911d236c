// The windows that were looked at, as a browser remembers pages.

export interface Window {
  time: readonly [number, number] | null;
  bytes: readonly [number, number] | null;
}

export class ZoomHistory {
  private past: Window[] = [];
  private future: Window[] = [];

  /** Remembers where one was before going on to another window. */
  leave(window: Window): void {
    this.past.push(window);
    if (this.past.length > 100) this.past.shift();
    this.future = [];
  }
  get canGoBack(): boolean {
    return this.past.length > 0;
  }
  get canGoForward(): boolean {
    return this.future.length > 0;
  }
  back(here: Window): Window | null {
    const window = this.past.pop();
    if (!window) return null;
    this.future.push(here);
    return window;
  }
  forward(here: Window): Window | null {
    const window = this.future.pop();
    if (!window) return null;
    this.past.push(here);
    return window;
  }
}
